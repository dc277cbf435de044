// A process for graphile-worker: it adds jobs, or works on them, with its documentation's settings for throughput.
import { makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { obey } from "../obey.mjs";
import { inParallel } from "./in-parallel.mjs";

const task = "greet";
const payload = { name: "bench" };
const bulk = 1_000;
let pool;
let utils;
let concurrency;

obey({
  async produce(config) {
    concurrency = config.concurrency;
    pool = new pg.Pool({ connectionString: config.url, max: 1 });
    utils = await makeWorkerUtils({ connectionString: config.url, maxPoolSize: 16 });
    await utils.migrate();
  },
  async work({ url, concurrency: concurrentJobs }) {
    const worker = {
      connectionString: url,
      concurrentJobs,
      maxPoolSize: concurrentJobs + 2,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    };
    await run({ preset: { worker }, taskList: { [task]: async ({ name }) => ({ greeting: name }) } });
  },
  add: (count) => inParallel(concurrency, count, () => utils.addJob(task, payload)),
  async addInBulk(count) {
    for (let left = count; left > 0; left -= bulk) {
      const jobs = Array.from({ length: Math.min(left, bulk) }, () => ({ identifier: task, payload }));
      await utils.addJobs(jobs);
    }
  },
  async isDone() {
    // Finished jobs are deleted.
    const { rows } = await pool.query("SELECT NOT EXISTS (SELECT FROM graphile_worker._private_jobs) AS done");
    return rows[0].done;
  },
});
