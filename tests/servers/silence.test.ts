import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Ending, endWith } from "../e2e/handlers.js";
import { makePuppets } from "../e2e/puppet.js";
import { type Body, statusOf, submit } from "../e2e/wire.js";
import type { Run } from "../faults/audit/run-journal.js";
import { isAlive, leadersOf, signal } from "../faults/machine/processes.js";
import { Scene } from "../faults/scene.js";
import { call, until } from "../harness.js";
import { type Cluster, type Member, startCluster } from "./cluster.js";
import { startStallingProxy } from "./stalling-proxy.js";

/** The hosts of this cluster fall silent. */
let cluster: Cluster;
/** The connections of this cluster fall silent. */
let linked: Cluster;
let scene: Scene;
beforeAll(async () => {
  scene = new Scene();
  [cluster, linked] = await Promise.all([startCluster(3), startCluster(2)]);
});
afterAll(async () => {
  await Promise.all([cluster?.end(), linked?.end()]);
  scene?.end();
});

/** The keepers of a server's workers, found by its directory in their environment. */
function keepersOf({ dataDir }: Member): number[] {
  const isKeeper = (pid: string) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes(`${dataDir}/logs`);
    } catch {
      return false;
    }
  };
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && isKeeper(name))
    .map(Number);
}

/** Every process of a host: its server, its keeper, and its workers of an endpoint. */
function processesOf(host: Member, endpoint: string): number[] {
  const isItsOwn = (env: Readonly<Record<string, string>>) =>
    env.RUNPOD_WEBHOOK_PING?.startsWith(`${host.url}/`) === true;
  const leaders = leadersOf([endpoint]).filter(({ env }) => isItsOwn(env));
  return [host.pid, ...keepersOf(host), ...leaders.map(({ pid }) => pid)];
}

/** An endpoint with a worker on each host, and a job on each worker that runs until its gate opens. */
async function makeSpread(test: Ending, server: Member) {
  const { endpoint } = await scene.own(server, { workersMin: 3, workersMax: 3 });
  endWith(test, server, endpoint);
  await until(async () => (await call(server, "GET", `/v2/${endpoint}/health`)).body.workers.idle === 3, 60_000);
  const mayEnd = join(scene.folder, `${endpoint}-end`);
  const jobs = await Promise.all(
    [1, 2, 3].map((n) => submit(server, endpoint, { key: `${endpoint}-${n}`, ms: 0, fate: "return", until: mayEnd })),
  );
  const runs = () => scene.runs().filter(({ job }) => jobs.includes(job));
  await until(() => runs().length === 3, 30_000);
  return { endpoint, jobs, runs, letEnd: () => writeFileSync(mayEnd, "") };
}

const hostOf = async (worker: string): Promise<Member | undefined> => {
  const [row] = await cluster.query<{ host_no: number }>("SELECT host_no FROM worker WHERE id = $1", [worker]);
  return cluster.members.find(({ hostNo }) => hostNo === row?.host_no);
};

/** Each job has ended once with the output of its last run. If its host was lost, that run was on another host. */
async function expectMoved(
  server: Member,
  endpoint: string,
  jobs: readonly string[],
  gone: readonly Member[],
  runs: () => Run[],
) {
  const ends: Body[] = await until(async () => {
    const states = await Promise.all(jobs.map((job) => statusOf(server, endpoint, job)));
    return states.every(({ status }) => status === "COMPLETED") && states;
  }, 80_000);
  for (const { id, output, workerId } of ends) {
    const own = runs().filter(({ job }) => job === id);
    const first = own[0] as Run;
    const moved = gone.includes((await hostOf(first.worker)) as Member);
    expect(own).toHaveLength(moved ? 2 : 1);
    expect({ run: output.run, worker: workerId }).toEqual({ run: own.at(-1)?.run, worker: own.at(-1)?.worker });
    expect(gone).not.toContain(await hostOf(workerId));
  }
}

/** When another server gave up a host's workers, in milliseconds after `since`. */
async function givenUpAfter(host: Member, endpoint: string, since: number): Promise<number> {
  const [row] = await cluster.query<{ at: number }>(
    `SELECT max(ended_at) AS at FROM worker
     WHERE host_no = $1 AND endpoint_no = (SELECT no FROM endpoint WHERE id = $2)`,
    [host.hostNo, endpoint],
  );
  return (row?.at ?? Number.POSITIVE_INFINITY) - since;
}

/** Starts another server, whose connections to the database can be cut. */
async function joinBehindProxy(test: Ending) {
  const proxy = await startStallingProxy(linked.postgres.port);
  test.onTestFinished(() => proxy.end());
  const server = await linked.join({ MILLRACE_DATABASE_URL: linked.url.replace(/:\d+\//, `:${proxy.port}/`) });
  test.onTestFinished(() => server.stop().then(() => {}));
  return { proxy, server };
}

/** A puppet that calls this server. */
async function makePuppetOf(test: Ending, server: Member) {
  await linked.settled();
  const { id: endpoint, puppets } = await makePuppets(test, server, { workersMin: 4, workersMax: 4 });
  const isIts = (address: string) => new URL(address).port === String(server.port);
  return { endpoint, worker: await until(() => puppets().find((each) => isIts(each.takeUrl(false))), 60_000) };
}

describe.concurrent("connections that die in silence", { timeout: 120_000 }, () => {
  it("a listening connection is opened again, and nothing is lost meanwhile", async (test) => {
    const { proxy, server: deaf } = await joinBehindProxy(test);
    const { endpoint, worker } = await makePuppetOf(test, linked.members[0] as Member);
    const answerOne = async (): Promise<number> => {
      const asked = call(deaf, "POST", `/v2/${endpoint}/runsync?wait=60000`, { input: {} });
      const job = await until(async () => (await worker.take()).body?.id as string | undefined, 40_000);
      await worker.done(job, { output: "heard" });
      const doneAt = performance.now();
      expect((await asked).body).toMatchObject({ id: job, status: "COMPLETED", output: "heard" });
      return performance.now() - doneAt;
    };
    const first = await answerOne();
    expect(proxy.listeners()).toBe(1);
    proxy.silence();
    const silentAt = performance.now();
    const meanwhile = await answerOne();
    await until(() => proxy.listeners() > 1, 40_000);
    const openedAfter = performance.now() - silentAt;
    const shown = [first, meanwhile, await answerOne()].map((ms) => `${ms.toFixed(0)} ms`).join(", ");
    console.log(`answers before, meanwhile, after: ${shown}; listening again after ${openedAfter.toFixed(0)} ms`);
  });

  it("all connections of a server are opened again before its workers count as lost", async (test) => {
    const { proxy, server } = await joinBehindProxy(test);
    const { endpoint, worker } = await makePuppetOf(test, server);
    const job = await submit(server, endpoint);
    expect((await worker.take()).body.id).toBe(job);
    proxy.silenceAll();
    const silentAt = performance.now();
    const runs = async () => {
      const { status, headers } = await call(server, "POST", `/v2/${endpoint}/run`, { input: {} });
      if (status === 200) return true;
      expect(status).toBe(503);
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
      return false;
    };
    await until(runs, 60_000);
    console.log(
      `a server without any way to its database came back after ${Math.round(performance.now() - silentAt)} ms`,
    );
    await until(async () => (await worker.done(job, { output: "kept" })).status === 200, 40_000);
    const state = await statusOf(server, endpoint, job);
    expect(state).toMatchObject({ status: "COMPLETED", output: "kept", retries: 0, workerId: worker.id });
    expect(worker.alive()).toBe(true);
  });
});

describe.concurrent("hosts that fall silent", { timeout: 200_000 }, () => {
  it("count as lost, and their jobs run elsewhere; a host that returns stops its workers", async (test) => {
    const [staying, killed, stopped] = cluster.members as [Member, Member, Member];
    const { endpoint, jobs, runs, letEnd } = await makeSpread(test, staying);
    const [dead, halted] = [processesOf(killed, endpoint), processesOf(stopped, endpoint)];
    expect([dead.length, halted.length]).toEqual([3, 3]);
    const goneAt = Date.now();
    for (const pid of dead) signal(pid, "SIGKILL");
    for (const pid of halted) signal(pid, "SIGSTOP");
    letEnd();
    test.onTestFinished(() => {
      for (const pid of halted) signal(pid, "SIGCONT");
    });
    await expectMoved(staying, endpoint, jobs, [killed, stopped], runs);
    for (const host of [killed, stopped]) {
      const after = await givenUpAfter(host, endpoint, goneAt);
      console.log(`the workers of a ${host === killed ? "killed" : "stopped"} host were given up after ${after} ms`);
      expect(after).toBeGreaterThan(25_000); // a short silence is allowed
    }
    const before = await Promise.all(jobs.map((job) => statusOf(staying, endpoint, job)));
    for (const pid of halted) signal(pid, "SIGCONT");
    const [server, , worker] = halted as [number, number, number];
    await until(() => !isAlive(worker), 40_000);
    expect(isAlive(server)).toBe(true);
    expect(await Promise.all(jobs.map((job) => statusOf(stopped, endpoint, job)))).toEqual(before);
  });
});

it("a host that returns after a long time ends the workers that were given up", async (test) => {
  const [staying] = cluster.members as [Member, Member, Member];
  await cluster.settled();
  const { id: endpoint, puppet } = await makePuppets(test, staying);
  const worker = await puppet(0, 40_000);
  expect((await call(staying, "GET", `/v1/endpoints/${endpoint}`)).status).toBe(200);
  await cluster.query("UPDATE worker SET ended_at = $2, wanted = 'stopped' WHERE id = $1", [
    worker.id,
    Date.now() - 600_000,
  ]);
  // No notification is sent for a row that was changed behind the servers' backs: all rows are read every half minute.
  await until(() => !worker.alive(), 90_000);
  await puppet(1, 40_000); // and it does not block the next worker
});
