// graphile-worker and pg-boss: one process that adds jobs and two that run them, on a separate database.
import { reach, startAgent } from "../processes.mjs";
import { versionOf } from "./versions.mjs";

const concurrency = 64;

/** `name` is the peer's package. */
export async function startPostgresPeer(scope, services, name) {
  const file = `peers/${name}-agent.mjs`;
  const config = { url: await services.database(name.replace("-", "_")), concurrency };
  const producer = await startAgent(scope, file);
  await producer.ask("produce", config);
  const workers = [await startAgent(scope, file), await startAgent(scope, file)];
  for (const worker of workers) await worker.ask("work", config);
  const isDone = () => producer.ask("isDone");
  const measured = async (count, verb) => {
    const beganAt = performance.now();
    await producer.ask(verb, count);
    await reach(`the end of ${name}'s jobs`, isDone);
    return (count / (performance.now() - beganAt)) * 1_000;
  };
  return {
    version: versionOf(name),
    /**
     * Jobs per second, from the first added job to the last finished one; each is acknowledged separately, 64 at a
     * time.
     */
    wholeJobs: (count) => measured(count, "add"),
    /** The same, with 1,000 jobs added in a call. */
    wholeJobsInBulk: (count) => measured(count, "addInBulk"),
  };
}
