// graphile-worker and pg-boss: one process that adds, two that work, on a database of their own.
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
    await reach(`jobs of ${name} that are done`, isDone);
    return (count / (performance.now() - beganAt)) * 1_000;
  };
  return {
    version: versionOf(name),
    /** Jobs a second, from the first that is added to the last that is done; each is acknowledged by itself, 64 at a time. */
    wholeJobs: (count) => measured(count, "add"),
    /** The same, added 1,000 in a call. */
    wholeJobsInBulk: (count) => measured(count, "addInBulk"),
  };
}
