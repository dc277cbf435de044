import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { eventsOf } from "@millrace/api/client";
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";
import { limits } from "../../packages/server/src/limits/index.js";
import { makeHandler, makeQueue } from "../e2e/handlers.js";
import { makePuppets, type Puppet } from "../e2e/puppet.js";
import { type Body, reach, submit, unknownJob } from "../e2e/wire.js";
import { call, until } from "../harness.js";
import { type Cluster, type Member, startCluster } from "./cluster.js";

let cluster: Cluster;
let here: Member;
let there: Member;
beforeAll(async () => {
  cluster = await startCluster(2, { MILLRACE_RATE_LIMITS: "on" });
  [here, there] = cluster.members as [Member, Member];
});
afterAll(() => cluster?.end());

/** An endpoint with one puppet on each server; resolves with the puppet that calls the second server. */
async function makeDistant(test: Parameters<typeof makePuppets>[0]): Promise<{ endpoint: string; worker: Puppet }> {
  const { id, puppets } = await makePuppets(test, here, { workersMin: 4, workersMax: 4 });
  const isThere = (puppet: Puppet) => new URL(puppet.takeUrl(false)).port === String(there.port);
  return { endpoint: id, worker: await until(() => puppets().find(isThere), 40_000) };
}

/** The value that this share of the values does not exceed. */
const quantile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor(share * (values.length - 1))] ?? Number.NaN;

describe("while a job's worker talks to the other server", () => {
  it("a job is handed to it and answered at once", async (test) => {
    const { endpoint, worker } = await makeDistant(test);
    const late: number[] = [];
    const taken: number[] = [];
    // If each round waited for the poll that comes every few seconds anyway, the test would time out.
    for (let round = 0; round < 100; round++) {
      const polled = worker.take();
      const sentAt = performance.now();
      const asked = call(here, "POST", `/v2/${endpoint}/runsync`, { input: { round } }).then((reply) => ({
        ...reply,
        at: performance.now(),
      }));
      const job = await polled;
      taken.push(performance.now() - sentAt);
      expect(job.body).toEqual({ id: expect.any(String), input: { round } });
      await worker.done(job.body.id, { output: { round } });
      const doneAt = performance.now();
      const answer = await asked;
      late.push(answer.at - doneAt);
      expect(answer.body).toMatchObject({ id: job.body.id, status: "COMPLETED", output: { round } });
    }
    const shown = (values: readonly number[]) =>
      `p50 ${quantile(values, 0.5).toFixed(1)} ms, p99 ${quantile(values, 0.99).toFixed(1)} ms`;
    console.log(`from /runsync here to the take there: ${shown(taken)}`);
    console.log(`from job-done there to /runsync's answer here: ${shown(late)}`);
  });

  it("/status-sync and /stream are answered as results come, and a cancelled job is stopped", async (test) => {
    const { endpoint, worker } = await makeDistant(test);
    const job = await submit(here, endpoint);
    expect((await worker.take()).body.id).toBe(job);
    const read = async (): Promise<Body> => (await call(here, "GET", `/v2/${endpoint}/stream/${job}?wait=20000`)).body;
    for (const n of [1, 2]) {
      const reading = read();
      await worker.chunk(job, { output: { n } });
      expect(await reading).toEqual([{ output: { n }, metrics: { stream_index: n - 1 } }]);
    }
    const waiting = call(here, "GET", `/v2/${endpoint}/status-sync/${job}?wait=20000`);
    await worker.done(job, { output: "over" });
    expect((await waiting).body).toMatchObject({ id: job, status: "COMPLETED", output: "over" });
    expect(await read()).toEqual([]);

    const second = await submit(here, endpoint);
    expect((await worker.take()).body.id).toBe(second);
    const stops = worker.stops();
    await call(here, "POST", `/v2/${endpoint}/cancel/${second}`);
    expect((await stops).body).toEqual({ jobsToStop: [second] });
    await worker.ping();
    expect((await worker.done(second, { output: "late" })).status).toBe(200);
    expect((await call(there, "GET", `/v2/${endpoint}/status/${second}`)).body.status).toBe("CANCELLED");
  });

  it("its pings keep it and its jobs alive for both", async (test) => {
    const { endpoint, worker } = await makeDistant(test);
    const job = await submit(there, endpoint);
    expect((await worker.take()).body.id).toBe(job);
    await worker.ping([job]);
    // The first server reads from the database what the second has heard.
    const seen = await until(async () => {
      const rows = await cluster.query<{ seen_at: number; has_pinged: number }>(
        "SELECT seen_at, has_pinged FROM worker WHERE id = $1",
        [worker.id],
      );
      return rows[0] && rows[0].seen_at > 0 && rows[0];
    });
    expect(Number(seen.has_pinged)).toBe(1);
    await worker.done(job, { output: 1 });
    await reach(here, endpoint, job, "COMPLETED");
  });
});

describe("resources that one server has made", () => {
  it("are known to the other server at once", async (test) => {
    for (let round = 0; round < 5; round++) {
      const endpoint = await makeQueue(test, here);
      const reply = await call(there, "POST", `/v2/${endpoint}/run`, { input: {} });
      expect(reply.status, JSON.stringify(reply.body)).toBe(200);
      expect((await call(here, "GET", `/v2/${endpoint}/status/${reply.body.id}`)).body.status).toBe("IN_QUEUE");
      expect((await call(there, "GET", `/v1/endpoints/${endpoint}`)).body.id).toBe(endpoint);
    }
    const made = await call(here, "POST", "/v1/templates", { name: `k-${Date.now()}`, imageName: makeHandler(test) });
    const known = await call(there, "POST", "/v1/endpoints", { templateId: made.body.id, workersMax: 0 });
    expect(known.status).toBe(200);
    expect((await call(here, "DELETE", `/v1/endpoints/${known.body.id}`)).status).toBe(204);
    const listed = (await call(there, "GET", "/v1/endpoints")).body.map(({ id }: Body) => id);
    expect(listed).not.toContain(known.body.id);
  });

  it("show as changed and deleted on the other server soon, without a request for them", async (test) => {
    const endpoint = await makeQueue(test, here);
    const timeoutOf = async () => {
      const job = await submit(there, endpoint);
      const query = "SELECT execution_timeout_ms AS ms FROM job WHERE id = $1";
      return (await cluster.query<{ ms: number }>(query, [job]))[0]?.ms;
    };
    expect(await timeoutOf()).toBe(600_000);
    await call(here, "PATCH", `/v1/endpoints/${endpoint}`, { executionTimeoutMs: 77_000 });
    await until(async () => (await timeoutOf()) === 77_000, 10_000);
    const idle = await makeQueue(test, here);
    for (const each of [endpoint, idle]) {
      expect((await call(here, "DELETE", `/v1/endpoints/${each}`)).status).toBe(204);
      await until(async () => (await call(there, "POST", `/v2/${each}/run`, { input: {} })).status === 404, 10_000);
    }
  });

  it("can be changed by both servers at once without losing either change", async (test) => {
    const endpoint = await makeQueue(test, here);
    const patch = (server: Member, body: object) => call(server, "PATCH", `/v1/endpoints/${endpoint}`, body);
    for (let round = 1; round <= 5; round++) {
      const replies = await Promise.all([patch(here, { idleTimeout: round }), patch(there, { scalerValue: round })]);
      expect(replies.map(({ status }) => status)).toEqual([200, 200]);
      for (const server of [here, there]) {
        await until(async () => {
          const { body } = await call(server, "GET", `/v1/endpoints/${endpoint}`);
          return body.idleTimeout === round && body.scalerValue === round;
        }, 10_000);
      }
    }
  });

  it("include keys, which work at once and end soon after revocation", async () => {
    const key = `mr_test_${Math.random().toString(36).slice(2)}`;
    const read = (server: Member) => call({ url: server.url, key }, "GET", "/v1/endpoints");
    expect((await read(there)).status).toBe(401);
    await cluster.query(
      `INSERT INTO api_key (hash, prefix, scope, owner_no, is_bootstrap)
       SELECT $1, 'mr_tes', scope, owner_no, 0 FROM api_key LIMIT 1`,
      [createHash("sha256").update(key).digest("hex")],
    );
    for (const server of [here, there]) expect((await read(server)).status).toBe(200);
    await cluster.query("DELETE FROM api_key WHERE is_bootstrap = 0");
    for (const server of [here, there]) await until(async () => (await read(server)).status === 401, 10_000);
  });
});

it("unknown keys and endpoints do not cause a full read", async () => {
  // An unknown key costs one index lookup, which fetches no row.
  const keysRead = async () => {
    const query = `SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS n FROM pg_stat_user_tables WHERE relname = 'api_key'`;
    return (await cluster.query<{ n: number }>(query))[0]?.n as number;
  };
  const keys = (await cluster.query<{ n: number }>("SELECT count(*)::int AS n FROM api_key"))[0]?.n as number;
  // An idle session reports its last counts after ten seconds: wait for the counts of earlier tests.
  const quietSeconds = 11;
  const perSecondAlone = (keys * cluster.members.length) / 2; // each rereads every two seconds
  await until(async () => {
    const earlier = await keysRead();
    await new Promise((later) => setTimeout(later, quietSeconds * 1_000));
    return (await keysRead()) - earlier < quietSeconds * 3 * perSecondAlone;
  }, 60_000);
  const [before, startedAt] = [await keysRead(), performance.now()];
  const isOver = () => performance.now() > startedAt + 3_000;
  let asked = 0;
  const askOn = async (n: number) => {
    while (!isOver()) {
      const key = n % 2 === 0 ? `mr_unknown_${n}` : here.key;
      const { status } = await call({ url: here.url, key }, "GET", `/v2/unknown0000000/status/${unknownJob}`);
      expect(status).toBe(n % 2 === 0 ? 401 : 404);
      asked++;
    }
  };
  await Promise.all(Array.from({ length: 20 }, (_, n) => askOn(n)));
  const seconds = (performance.now() - startedAt) / 1_000;
  const read = (await keysRead()) - before;
  console.log(`${asked} unknown in ${seconds.toFixed(1)} s: ${read} rows read of ${keys} keys`);
  // Allow for reads that were on their way before, and for what the servers read by themselves.
  expect(read).toBeLessThan((seconds + quietSeconds) * perSecondAlone + 5 * keys);
});

describe("a rate limit", () => {
  it("is shared by both servers, however a client spreads its calls", async (test) => {
    const endpoint = await makeQueue(test, here);
    let accepted = 0;
    let acceptedAtFirst = 0;
    let refused = 0;
    const startedAt = performance.now();
    const cancel = async (server: Member) => {
      const { status, headers } = await call(server, "POST", `/v2/${endpoint}/cancel/${unknownJob}`);
      if (status === 404) {
        accepted++;
        if (refused === 0) acceptedAtFirst++;
        return;
      }
      expect(status).toBe(429);
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
      refused++;
    };
    // Only a few at a time on each server: more would reach the limit of concurrent calls.
    const keepOn = async (server: Member) => {
      while (refused < 60) await Promise.all([1, 2, 3, 4].map(() => cancel(server)));
    };
    await Promise.all([keepOn(here), keepOn(there)]);
    const windows = 1 + Math.floor((performance.now() - startedAt) / 10_000); // one, unless the machine is very busy
    console.log(`accepted ${accepted} of ${accepted + refused} cancels in ${windows} × 10 s, the limit is 100`);
    expect(acceptedAtFirst).toBeGreaterThanOrEqual(95);
    expect(accepted).toBeLessThanOrEqual(105 * windows);
  });
});

/** Collects the names of the events on a server's stream, until the test ends. */
async function followed(test: TestContext, server: Member): Promise<string[]> {
  const left = new AbortController();
  test.onTestFinished(() => left.abort());
  const headers = { authorization: `Bearer ${server.key}` };
  const reply = await fetch(`${server.url}/v1/events`, { headers, signal: left.signal });
  const names: string[] = [];
  const read = async () => {
    for await (const events of eventsOf(reply)) names.push(...events.map(({ event }) => event));
  };
  read().catch(() => {}); // the test has ended
  return names;
}

describe("the stream of changes", () => {
  it("tells of changes at the other server within seconds, and of nothing while there are none", async (test) => {
    const endpoint = await makeQueue(test, there);
    const names = await followed(test, here);
    const restMs = limits.newsElsewhereMs + 2 * limits.beatMs;
    /** Resolves when nothing was told for longer than two reminders are apart. */
    const isQuiet = async () => {
      for (let count = -1; names.length > count; ) {
        count = names.length;
        await sleep(restMs);
      }
    };
    await isQuiet();
    names.length = 0;
    await submit(there, endpoint);
    await until(() => names.includes("missed"), restMs);
    await isQuiet();
    expect(names).toEqual(["missed"]);
  });
});
