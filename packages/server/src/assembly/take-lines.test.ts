import { afterEach, beforeEach, expect, it } from "vitest";
import type { Topic } from "../bell.js";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import type { TakeLine } from "../lines/take-line.js";
import type { LiveWorker } from "../memory/registry.js";
import { closeWorker } from "../operations/workers/worker-life.js";
import { Scene } from "../testing/scene-fixture.js";
import { isServedHere } from "./bell.js";
import { takeLines } from "./take-lines.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
let elsewhere: Topic[];
const lines = new Map<number, TakeLine>();
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
  elsewhere = [];
  lines.clear();
});
afterEach(() => scene.close());

/** The worker asks for a job, then the others do, and a job is submitted. */
async function submitToPoll(...others: LiveWorker[]) {
  const { bell } = scene.parts;
  const heard = { ...bell, on: bell.on.bind(bell), ringElsewhere: (topic: Topic) => void elsewhere.push(topic) };
  const line = takeLines(lines, { ...scene.parts, bell: heard })(endpoint.no);
  const polls = [worker, ...others].map(({ row }) => line.stand(row.no, 1));
  await scene.settle();
  const served = isServedHere(lines, `queue:${endpoint.no}`);
  await scene.submit(endpoint);
  bell.ring(`queue:${endpoint.no}`);
  await scene.settle();
  for (const { leave } of polls) leave();
  return { count: (await Promise.all(polls.map(({ jobs }) => jobs))).flat().length, served };
}

it("A line of workers that may take jobs serves jobs here, and notifies no other server", async () => {
  expect(await submitToPoll(await scene.worker(endpoint))).toEqual({ count: 1, served: true });
  expect(elsewhere).toEqual([]);
});

it("A line that has only closed workers leaves the jobs to other servers, and notifies them", async () => {
  await closeWorker(scene.parts, worker, "it is to be replaced");
  expect(await submitToPoll()).toEqual({ count: 0, served: false });
  expect(new Set(elsewhere)).toEqual(new Set([`queue:${endpoint.no}`]));
});

it("Topics of other kinds, and queues without a line, are served elsewhere", () => {
  const serving = { canServe: true };
  expect(isServedHere(new Map([[7, serving]]), "queue:7")).toBe(true);
  for (const topic of ["queue:8", "demand:7", "demand"] as const)
    expect(isServedHere(new Map([[7, serving]]), topic)).toBe(false);
});
