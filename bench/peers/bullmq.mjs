// BullMQ: one process that adds jobs and two that run them, on Redis that syncs each write.
import { reach, startAgent } from "../processes.mjs";
import { versionOf } from "./versions.mjs";

const concurrency = 64;

/** A queue, with workers of 64 jobs at a time. */
export async function startBullmq(scope, services, queue, { workers = 2 } = {}) {
  const { port, client } = await services.redis();
  const config = { queue, port, concurrency };
  const producer = await startAgent(scope, "peers/bullmq-agent.mjs");
  await producer.ask("produce", config);
  for (let n = 0; n < workers; n++) await (await startAgent(scope, "peers/bullmq-agent.mjs")).ask("work", config);
  const completed = () => client.zcard(`bull:${queue}:completed`);
  return {
    version: versionOf("bullmq"),
    /**
     * Adds `count` jobs, 64 at a time, each acknowledged separately; resolves with jobs per second until the last was
     * done.
     */
    async wholeJobs(count) {
      const before = await completed();
      const beganAt = performance.now();
      const done = reach("the end of BullMQ's jobs", async () => (await completed()) >= before + count);
      await Promise.all([done, producer.ask("add", count)]);
      return (count / (performance.now() - beganAt)) * 1_000;
    },
    /** Adds one job after another and waits for each; resolves with their times in milliseconds. */
    roundTrips: (count) => producer.ask("roundTrips", count),
  };
}
