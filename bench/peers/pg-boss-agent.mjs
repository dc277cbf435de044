// A process for pg-boss: it adds jobs, or works on them. Its own workers poll at most every half second. To leave that
// wait out, these fetch and complete batches in a loop, as its documentation shows for custom workers.
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { PgBoss } from "pg-boss";
import { obey } from "../obey.mjs";
import { inParallel } from "./in-parallel.mjs";

const queue = "greet";
const data = { name: "bench" };
const bulk = 1_000;
const emptyPauseMs = 5;
let boss;
let pool;
let concurrency;

async function open({ url, concurrency: width }) {
  concurrency = width;
  boss = new PgBoss({ connectionString: url, max: 32, supervise: false, schedule: false });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  await boss.createQueue(queue);
  pool = new pg.Pool({ connectionString: url, max: 1 });
}

async function work() {
  for (;;) {
    const jobs = await boss.fetch(queue, { batchSize: concurrency });
    if (jobs.length === 0) await sleep(emptyPauseMs);
    else await boss.complete(queue, await Promise.all(jobs.map(async (job) => (await handle(job)) && job.id)));
  }
}
const handle = async (job) => ({ greeting: job.data.name });

obey({
  produce: open,
  async work(config) {
    await open(config);
    work().catch((error) => {
      console.error(error);
      process.exit(1);
    });
  },
  add: (count) => inParallel(concurrency, count, () => boss.send(queue, data)),
  async addInBulk(count) {
    for (let left = count; left > 0; left -= bulk) {
      await boss.insert(
        queue,
        Array.from({ length: Math.min(left, bulk) }, () => ({ data })),
      );
    }
  },
  async isDone() {
    const { rows } = await pool.query(
      "SELECT NOT EXISTS (SELECT FROM pgboss.job WHERE name = $1 AND state < 'completed') AS done",
      [queue],
    );
    return rows[0].done;
  },
});
