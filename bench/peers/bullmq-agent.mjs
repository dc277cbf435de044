// A process for BullMQ: it adds jobs, or works on them.
import { Queue, QueueEvents, Worker } from "bullmq";
import { obey } from "../obey.mjs";
import { inParallel } from "./in-parallel.mjs";

const connectionTo = (port) => ({ host: "127.0.0.1", port, maxRetriesPerRequest: null });
const input = { name: "bench" };
let queue;
let events;
let concurrency;

obey({
  async produce(config) {
    concurrency = config.concurrency;
    queue = new Queue(config.queue, { connection: connectionTo(config.port) });
    events = new QueueEvents(config.queue, { connection: connectionTo(config.port) });
    await Promise.all([queue.waitUntilReady(), events.waitUntilReady()]);
  },
  async work(config) {
    const handler = async (job) => ({ greeting: job.data.name });
    const worker = new Worker(config.queue, handler, {
      connection: connectionTo(config.port),
      concurrency: config.concurrency,
    });
    await worker.waitUntilReady();
  },
  add: (count) => inParallel(concurrency, count, () => queue.add("job", input)),
  async roundTrips(count) {
    const times = [];
    for (let n = 0; n < count; n++) {
      const beganAt = performance.now();
      const job = await queue.add("job", input);
      await job.waitUntilFinished(events);
      times.push(performance.now() - beganAt);
    }
    return times;
  },
});
