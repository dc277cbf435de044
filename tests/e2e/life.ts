import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { call, until } from "../harness.js";
import type { Body, Target } from "./wire.js";

async function read(server: Target, path: string): Promise<Body> {
  const reply = await call(server, "GET", path);
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  return reply.body;
}

/** The live workers of an endpoint, newest first. */
export const workersOf = (server: Target, endpoint: string): Promise<Body[]> =>
  read(server, `/v1/endpoints/${endpoint}/workers`);

/** The same, with the workers that ended in the last day. */
export const allWorkersOf = (server: Target, endpoint: string): Promise<Body[]> =>
  read(server, `/v1/endpoints/${endpoint}/workers?ended=true`);

export const workerOf = (server: Target, worker: string): Promise<Body> => read(server, `/v1/workers/${worker}`);
export const coldStartsOf = (server: Target, endpoint: string): Promise<Body> =>
  read(server, `/v1/endpoints/${endpoint}/cold-starts`);
export const decisionsOf = (server: Target, endpoint: string): Promise<Body[]> =>
  read(server, `/v1/endpoints/${endpoint}/scaling`);
export const releasesOf = (server: Target, endpoint: string): Promise<Body[]> =>
  read(server, `/v1/endpoints/${endpoint}/releases`);

/** Changes an endpoint; resolves with the reply's body. */
export async function save(server: Target, endpoint: string, settings: Record<string, unknown>): Promise<Body> {
  const reply = await call(server, "PATCH", `/v1/endpoints/${endpoint}`, settings);
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  return reply.body;
}

/** Runs a job and expects it to be COMPLETED. */
export async function complete(server: Target, endpoint: string, input: unknown = {}): Promise<Body> {
  const { body } = await call(server, "POST", `/v2/${endpoint}/runsync?wait=60000`, { input });
  expect(body, JSON.stringify(body)).toMatchObject({ status: "COMPLETED" });
  return body;
}

/** Waits until a worker, optionally the one with this id, is in one of these states. */
export function inState(
  server: Target,
  endpoint: string,
  states: string | readonly string[],
  { id, withinMs = 20_000 }: { id?: string; withinMs?: number } = {},
): Promise<Body> {
  let last: Body[] = [];
  return until(async () => {
    last = await allWorkersOf(server, endpoint);
    return last.find((worker) => [states].flat().includes(worker.state) && (id === undefined || worker.id === id));
  }, withinMs).catch(() => {
    throw new Error(`no worker is ${states} within ${withinMs} ms: ${JSON.stringify(last)}`);
  });
}

/** Waits until an endpoint's worker is frozen: first in its row, then in these of its processes. */
export async function frozen(server: Target, endpoint: string, ...pids: number[]): Promise<Body> {
  const worker = await until(async () => {
    const [newest] = await workersOf(server, endpoint);
    return newest?.state === "paused" && phasesOf(newest).includes("paused") && newest;
  });
  await until(() => pids.every((pid) => letterOf(pid) === "T"));
  return worker;
}

/** The phases of a worker's timeline, in order. */
export const phasesOf = (worker: Body): string[] => worker.timeline.map(({ phase }: { phase: string }) => phase);

/** The state of a process in /proc: T if it is stopped; undefined if it has ended. */
export function letterOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3);
  } catch {
    return undefined;
  }
}
