import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Ending, makeQueue, makeRunning } from "../e2e/handlers.js";
import { makePuppets } from "../e2e/puppet.js";
import { reach, submit } from "../e2e/wire.js";
import { signal } from "../faults/machine/processes.js";
import { call, until } from "../harness.js";
import { type Cluster, type Member, startCluster } from "./cluster.js";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster(3);
});
afterAll(() => cluster?.end());

/** The server that runs the scaler, and so the other loops with a single owner. */
const owner = () => until(() => cluster.ownerOf("scale"), 30_000);

/** Records every webhook, and refuses the first of each job. */
async function startReceiver(test: Ending) {
  const calls: { job: string; id: string | undefined }[] = [];
  const receiver = createServer((request, reply) => {
    let text = "";
    request.on("data", (part) => (text += part));
    request.on("end", () => {
      const job = JSON.parse(text).id as string;
      const isFirst = !calls.some((each) => each.job === job);
      calls.push({ job, id: request.headers["webhook-id"] as string | undefined });
      reply.writeHead(isFirst ? 500 : 200).end();
    });
  });
  await new Promise<void>((done) => receiver.listen(0, "127.0.0.1", done));
  test.onTestFinished(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  return { url, callsOf: (job: string) => calls.filter((each) => each.job === job).map(({ id }) => id) };
}

/**
 * Begins work for each loop that has a single owner, before that owner is lost; afterwards the survivor is asked about
 * it.
 */
async function beginWork(test: Ending, survivor: Member) {
  const queue = await makeQueue(test, survivor);
  const receiver = await startReceiver(test);
  const { id: held, puppets } = await makePuppets(test, survivor, { workersMin: 3, workersMax: 3 });
  const isHere = (url: string) => new URL(url).port === String(survivor.port);
  const puppet = await until(() => puppets().find((each) => isHere(each.takeUrl(false))), 40_000);
  const announced = await submit(survivor, queue, {}, { webhook: receiver.url });
  await call(survivor, "POST", `/v2/${queue}/cancel/${announced}`);
  await until(() => receiver.callsOf(announced).length > 0);
  const short = await submit(survivor, queue, {}, { policy: { ttl: 10_000 } });
  const late = await submit(survivor, held, {}, { policy: { executionTimeout: 5_000 } });
  expect((await puppet.take()).body.id).toBe(late);
  return {
    /** Waits until what was begun has been timed out, delivered and swept. */
    async finish() {
      await reach(survivor, held, late, "TIMED_OUT", 40_000);
      const isSwept = async () => (await cluster.query("SELECT FROM job WHERE id = $1", [short])).length === 0;
      await until(isSwept, 40_000);
      await until(() => receiver.callsOf(announced).length >= 2, 40_000);
    },
    /** The webhook was sent twice in all, since its first call was refused. */
    expectDeliveredOnce() {
      const ids = receiver.callsOf(announced);
      expect(new Set(ids).size).toBe(1);
      expect(ids).toHaveLength(2);
    },
    /** Lets a fresh endpoint be scaled, and resolves with it. */
    async scale() {
      const fresh = await makeRunning(test, survivor, { workersMax: 1, idleTimeout: 1 });
      const job = await submit(survivor, fresh, { echo: "scaled" });
      expect(await reach(survivor, fresh, job, "COMPLETED", 40_000)).toMatchObject({ output: "scaled" });
      return fresh;
    },
  };
}

const livingWorkers = async (endpoint: string) => {
  const query = `SELECT FROM worker WHERE ended_at IS NULL AND endpoint_no = (SELECT no FROM endpoint WHERE id = $1)`;
  return (await cluster.query(query, [endpoint])).length;
};

/** Keeps an endpoint of at most one worker busy until it is told to stop; each time, its worker ends in between. */
function keepBusy(server: Member, endpoint: string) {
  let isOver = false;
  const jobs: string[] = [];
  const run = async () => {
    while (!isOver) {
      const { status, body } = await call(server, "POST", `/v2/${endpoint}/runsync`, { input: {} });
      if (status === 200) jobs.push(body.id);
      await until(async () => isOver || (await livingWorkers(endpoint)) === 0, 60_000);
    }
  };
  const running = run();
  return {
    jobs,
    async stop() {
      isOver = true;
      await running;
    },
  };
}

/** Workers that existed at the same time on an endpoint that allows one, according to the database. */
const overlaps = () =>
  cluster.query(`
    SELECT a.id AS one, b.id AS other, e.id AS endpoint FROM worker a JOIN worker b ON a.endpoint_no = b.endpoint_no AND a.no < b.no
    JOIN endpoint e ON e.no = a.endpoint_no WHERE e.settings::json ->> 'workersMax' = '1'
      AND (a.ended_at IS NULL OR b.created_at < a.ended_at - 50)`);

describe("when the owner of the loops", { timeout: 120_000 }, () => {
  it("is suspended until another server has done its work, nothing is done twice after its return", async (test) => {
    const stopped = await owner();
    const survivor = cluster.members.find((member) => member !== stopped) as Member;
    const work = await beginWork(test, survivor);
    const busy = keepBusy(survivor, await makeRunning(test, survivor, { workersMax: 1, idleTimeout: 1 }));
    await until(() => busy.jobs.length > 0, 40_000);
    signal(stopped.pid, "SIGSTOP");
    test.onTestFinished(() => void signal(stopped.pid, "SIGCONT"));
    const next = await until(async () => {
      const now = await cluster.ownerOf("scale");
      return now !== stopped && now;
    });
    expect(next.pid).not.toBe(stopped.pid);
    await work.finish();
    signal(stopped.pid, "SIGCONT");
    await work.scale();
    const before = busy.jobs.length;
    await until(() => busy.jobs.length > before, 60_000);
    await busy.stop();
    work.expectDeliveredOnce();
    expect(await overlaps()).toEqual([]);
    expect((await call(stopped, "GET", "/v1/endpoints")).status).toBe(200);
  });

  it("is killed, another server scales, times out, delivers and sweeps", async (test) => {
    const killed = await owner();
    const survivor = cluster.members.find((member) => member !== killed) as Member;
    const work = await beginWork(test, survivor);
    await killed.kill();
    const fresh = await work.scale();
    await work.finish();
    work.expectDeliveredOnce();
    const hosts = await cluster.query<{ host_no: number }>(
      "SELECT host_no FROM worker WHERE endpoint_no = (SELECT no FROM endpoint WHERE id = $1)",
      [fresh],
    );
    expect(hosts.map(({ host_no: no }) => no)).not.toContain(killed.hostNo);
    expect((await owner()).pid).not.toBe(killed.pid);
    expect(await overlaps()).toEqual([]);
    await killed.restart();
    await cluster.settled();
  });

  it("is stopped in order, its jobs and its loops continue elsewhere at once", async (test) => {
    const leaving = await owner();
    const staying = cluster.members.filter((member) => member !== leaving);
    const settings = { workersMin: 3, workersMax: 3 };
    const { id: endpoint, puppets } = await makePuppets(test, staying[0] as Member, settings, { PUPPET_STUBBORN: "1" });
    const there = await until(() => puppets().length === 3 && puppets(), 60_000);
    const jobs = await Promise.all(there.map((_, n) => submit(staying[0] as Member, endpoint, { n })));
    for (const puppet of there) expect(jobs).toContain((await puppet.take()).body.id);
    const isLeaving = (url: string) => new URL(url).port === String(leaving.port);
    const [gone] = there.filter((puppet) => isLeaving(puppet.takeUrl(false)));
    const others = there.filter((puppet) => puppet !== gone);
    const stopping = leaving.stop();
    // Long before its stubborn worker has ended.
    const next = await until(async () => {
      const now = await cluster.ownerOf("scale");
      return now !== leaving && now;
    });
    expect(gone?.alive()).toBe(true);
    expect(staying).toContain(next);
    const fresh = await makeRunning(test, staying[0] as Member);
    const job = await submit(staying[0] as Member, fresh, { echo: 1 });
    await reach(staying[0] as Member, fresh, job, "COMPLETED", 40_000);
    gone?.kill();
    expect(await stopping).toBe(0);
    const back = await Promise.race(others.map((puppet) => puppet.take({ inProgress: true })));
    expect(jobs).toContain(back.body.id);
    for (const puppet of others) {
      expect(puppet.alive()).toBe(true);
      expect(puppet.signals()).toEqual([]);
    }
    const [lease] = await cluster.query("SELECT FROM lease WHERE holder = $1", [leaving.serverNo]);
    expect(lease).toBeUndefined();
  });
});
