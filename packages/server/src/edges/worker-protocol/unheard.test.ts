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
