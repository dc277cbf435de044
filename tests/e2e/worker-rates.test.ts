import { afterAll, beforeAll, expect, it } from "vitest";
import { startServer, type TestServer } from "../harness.js";
import { makeHeld } from "./puppet.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ MILLRACE_REQUESTS_PER_WORKER: "0" });
});
afterAll(() => server?.end());

/** More than a client may submit in 10 s, and more than may be held of its waiting calls. */
const calls = 1_050;
const pollsHeld = 450;

it("polls, results, chunks and pings have no rate limit", { timeout: 120_000 }, async (test) => {
  const { worker, job } = await makeHeld(test, server);
  const kinds: ((n: number) => Promise<{ status: number }>)[] = [
    (n) => worker.chunk(job, { output: n }),
    (n) => worker.done(job, { status: "IN_PROGRESS", output: n }),
    () => worker.ping([job]),
  ];
  for (const kind of kinds) {
    const statuses = new Set<number>();
    for (let from = 0; from < calls; from += 100) {
      const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => kind(from + n)));
      for (const { status } of answers) statuses.add(status);
    }
    expect([...statuses]).toEqual([200]);
  }
  // a newer poll ends the one before, so that many can be asked: each is empty, none is refused
  await worker.done(job, { output: 1 });
  const polls = Array.from({ length: pollsHeld }, () => worker.take({ inProgress: true }));
  worker.kill(); // the last one is let go with its worker, or after its 20 s
  const statuses = (await Promise.all(polls)).map(({ status }) => status);
  expect([...new Set(statuses)]).toEqual([204]);
});
