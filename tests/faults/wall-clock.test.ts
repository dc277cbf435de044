import { statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer, until } from "../harness.js";
import { WallClock } from "./machine/wall-clock.js";
import { Scene } from "./scene.js";

const hourMs = 60 * 60_000;

let clock: WallClock;
let server: TestServer;
let scene: Scene;
beforeAll(async () => {
  clock = new WallClock();
  server = await startServer(clock.env);
  scene = new Scene();
});
afterAll(async () => {
  await server?.end();
  scene?.end();
  clock?.end();
});

/** How far the server's wall clock is ahead of ours, from the Date header of its replies. */
async function aheadMs(): Promise<number> {
  const reply = await fetch(`${server.url}/healthz`);
  await reply.arrayBuffer();
  return Date.parse(reply.headers.get("date") ?? "") - Date.now();
}

describe.each([
  { words: "forward", offsetMs: hourMs },
  { words: "back", offsetMs: -hourMs },
])("a wall clock that jumps an hour $words under a server", ({ words, offsetMs }) => {
  it("loses no job, runs none twice, and reverts no final state", async () => {
    clock.set(0);
    const { endpoint } = await scene.own(server, { workersMax: 1 });
    const submit = async (key: string, ms: number): Promise<string> =>
      (await call(server, "POST", `/v2/${endpoint}/run`, { input: { key: `${words} ${key}`, ms, fate: "return" } }))
        .body.id;
    const statusOf = async (job: string) => (await call(server, "GET", `/v2/${endpoint}/status/${job}`)).body;
    const ended = async (job: string) => {
      const status = await statusOf(job);
      return status.status === "COMPLETED" && status;
    };

    const first = await submit("ended before", 10);
    const end = await until(() => ended(first));
    const jobs = [await submit("running", 2_000), await submit("waiting", 10)];
    await until(() => scene.runs().some(({ job }) => job === jobs[0]));
    clock.set(offsetMs);
    await until(async () => Math.abs((await aheadMs()) - offsetMs) < 60_000);
    jobs.push(await submit("submitted after", 10));

    for (const job of jobs) {
      const { retries, delayTime, executionTime } = await until(() => ended(job));
      expect(retries).toBe(0);
      for (const ms of [delayTime, executionTime]) expect(ms).toBeLessThan(60_000);
      expect(Math.min(delayTime, executionTime)).toBeGreaterThanOrEqual(0);
      expect(scene.runs().filter((run) => run.job === job)).toHaveLength(1);
    }
    expect(await statusOf(first)).toEqual(end);
  });
});

// On PostgreSQL the server follows the database's clock, and refuses to start if its own differs much.
describe.skipIf(process.env.MILLRACE_TEST_POSTGRES).each([
  { words: "forward", offsetMs: hourMs },
  { words: "back", offsetMs: -hourMs },
])("a wall clock that jumps an hour $words while a server is away", ({ words, offsetMs }) => {
  it("loses no job, runs none twice, and reverts no final state", { timeout: 60_000 }, async () => {
    const wall = new WallClock();
    const killed = await startServer(wall.env);
    try {
      const { endpoint } = await scene.own(killed, { workersMax: 1 });
      const { endpoint: idle } = await scene.own(killed, { workersMax: 0 });
      const submit = async (key: string, ms: number, to = endpoint, ttl = 10 * 60_000): Promise<string> => {
        const body = { input: { key: `${words} ${key}`, ms, fate: "return" }, policy: { ttl } };
        return (await call(killed, "POST", `/v2/${to}/run`, body)).body.id;
      };
      const statusOf = async (job: string) => (await call(killed, "GET", `/v2/${endpoint}/status/${job}`)).body;
      const first = await submit("ended before", 10);
      const end = await until(async () => {
        const status = await statusOf(first);
        return status.status === "COMPLETED" && status;
      });
      const jobs = [await submit("running", 2_000), await submit("waiting", 10)];
      await until(() => scene.runs().some(({ job }) => job === jobs[0]));
      const brief = await submit("over soon", 10, idle, 10_000);

      expect(statSync(join(killed.dataDir, "clock")).mode & 0o777).toBe(0o600);
      await killed.kill();
      wall.set(offsetMs);
      await killed.restart();
      expect(await statusOf(first)).toEqual(end);
      jobs.push(await submit("submitted after", 10));
      for (const job of jobs) {
        const ended = await until(async () => {
          const status = await statusOf(job);
          return status.status !== "IN_QUEUE" && status.status !== "IN_PROGRESS" && status;
        });
        expect(ended).toMatchObject({ status: "COMPLETED", retries: 0 });
        for (const ms of [ended.delayTime, ended.executionTime]) expect(ms).toBeLessThan(60_000);
        expect(Math.min(ended.delayTime, ended.executionTime)).toBeGreaterThanOrEqual(0);
        expect(scene.runs().filter((run) => run.job === job)).toHaveLength(1);
      }
      await until(async () => (await call(killed, "GET", `/v2/${idle}/status/${brief}`)).status === 404);
    } finally {
      await killed.end();
      wall.end();
    }
  });
});
