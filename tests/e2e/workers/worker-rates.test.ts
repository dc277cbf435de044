import { afterAll, beforeAll, expect, it } from "vitest";
import { startServer, type TestServer } from "../../harness.js";
import { makeHeld } from "../puppet.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ MILLRACE_REQUESTS_PER_WORKER: "0" });
});
afterAll(() => server?.end());

/** More calls than a client may submit in 10 s, and more than the limit of held calls. */
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
  // A newer poll ends the previous one, so this many are possible: each is empty, and none is refused.
  await worker.done(job, { output: 1 });
  const polls = Array.from({ length: pollsHeld }, () => worker.take({ inProgress: true }));
  worker.kill(); // the last poll ends with its worker, or after its 20 s
  const statuses = (await Promise.all(polls)).map(({ status }) => status);
  expect([...new Set(statuses)]).toEqual([204]);
});
