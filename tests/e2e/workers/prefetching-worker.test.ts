import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer, until } from "../../harness.js";
import { makePuppets, type Puppet } from "../puppet.js";
import { healthOf, statusOf, submit } from "../wire.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
});
afterAll(() => server?.end());

/**
 * A worker that asks for its next job while one runs. It posts the result once both its handler and that take have
 * returned. Its pings name only the running job, and it never polls for jobs to stop.
 */
async function runAll(
  worker: Puppet,
  count: number,
  handle: (job: string, asked: Promise<unknown>) => Promise<unknown>,
): Promise<string[]> {
  const begun: string[] = [];
  let next: string = (await worker.take()).body.id;
  while (begun.length < count) {
    const job = next;
    begun.push(job);
    const asked = worker.take({ inProgress: true });
    await Promise.all([handle(job, asked), asked]);
    next = (await asked).body?.id;
    expect((await worker.done(job, { output: job })).status).toBe(200);
  }
  return begun;
}

describe("A worker that prefetches", () => {
  it("gets its take answered while its first job's result waits for that answer", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const job = await submit(server, endpoint, {}, { policy: { executionTimeout: 10_000 } });
    const held = new AbortController();
    // Another poll of this worker is held as usual. It shows that the take was not held.
    const stops = worker.stops(held.signal).then(
      () => "answered",
      () => "held",
    );
    expect(await runAll(worker, 1, async () => {})).toEqual([job]);
    held.abort();
    expect(await stops).toBe("held");
    expect(await statusOf(server, endpoint, job)).toMatchObject({ status: "COMPLETED", output: job });
  });

  it("runs each job once, and each has the time of its own handler", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const begunAt = performance.now();
    const [first, second] = [await submit(server, endpoint), await submit(server, endpoint)];
    const submitsMs = performance.now() - begunAt;
    await submit(server, endpoint); // so that no take is held
    const begun = await runAll(worker, 2, async (job, asked) => {
      await asked; // the next job is handed over, and pings name the running job
      for (const isLate of [false, true]) {
        if (isLate) await until(async () => (await statusOf(server, endpoint, job)).executionTime > 300);
        await worker.ping([job]);
      }
    });
    expect(begun).toEqual([first, second]);
    const [one, two] = [await statusOf(server, endpoint, first), await statusOf(server, endpoint, second)];
    expect([one.status, two.status]).toEqual(["COMPLETED", "COMPLETED"]);
    // The second job waited until the first was posted; it was submitted later by at most this time.
    expect(two.delayTime).toBeGreaterThanOrEqual(one.delayTime + one.executionTime - Math.ceil(submitsMs) - 1);
    expect((await healthOf(server, endpoint)).jobs).toMatchObject({ completed: 2, retried: 0 });
  });
});
