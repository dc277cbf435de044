import { EventEmitter } from "node:events";
import type { FastifyReply } from "fastify";
import { expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../operations/needs.js";
import { onceHeard } from "./repeats.js";

/** A reply whose connection broke before it was sent. */
const broken = (): FastifyReply =>
  ({ raw: Object.assign(new EventEmitter(), { closed: true, writableFinished: false }) }) as unknown as FastifyReply;

it("a chunk whose reply was lost is stored once, for as many jobs as are remembered", async () => {
  const worker = {} as LiveWorker;
  const stored: string[] = [];
  const post = (job: string) => onceHeard(broken(), worker, job, "digest", async () => void stored.push(job));
  const jobs = Array.from({ length: limits.unheardChunksMax + 1 }, (_, n) => `job-${n}`);
  for (const job of jobs) await post(job);
  expect(stored).toEqual(jobs);
  await post(jobs.at(-1)!);
  expect(stored).toHaveLength(jobs.length);
  await post(jobs[0]!); // forgotten: a worker lost more replies than the server remembers
  expect(stored).toHaveLength(jobs.length + 1);
});

it("a chunk that is sent again while it is being stored is stored once, and the next equal one, too", async () => {
  const worker = {} as LiveWorker;
  let stored = 0;
  let land = () => {};
  const landing = new Promise<void>((done) => {
    land = done;
  });
  const store = async () => {
    stored++;
    await landing;
  };
  const written = { raw: Object.assign(new EventEmitter(), { writableFinished: true, req: { socket: {} } }) };
  const first = onceHeard(broken(), worker, "job", "digest", store);
  const again = onceHeard(written as never, worker, "job", "digest", store);
  land();
  await Promise.all([first, again]);
  expect(stored).toBe(1);
  written.raw.emit("close");
  await onceHeard(broken(), worker, "job", "digest", store);
  expect(stored).toBe(2);
});

it("a chunk that could not be stored is stored when it is sent again", async () => {
  const worker = {} as LiveWorker;
  const post = (store: () => Promise<void>) => onceHeard(broken(), worker, "job", "digest", store);
  await expect(post(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  let stored = 0;
  await post(async () => void stored++);
  expect(stored).toBe(1);
});
