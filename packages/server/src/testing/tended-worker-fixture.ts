import { expect } from "vitest";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../memory/registry.js";
import type { Scene } from "./scene-fixture.js";

/** A worker whose row says that it is wanted. */
export async function wantedWorker(scene: Scene, endpoint: Endpoint): Promise<LiveWorker> {
  const { registry, ids, clock, here } = scene.parts;
  const { no: endpointNo, version } = scene.now(endpoint);
  const row = { id: ids.resource(), endpointNo, version, hostNo: here.hostNo, createdAt: clock.now() };
  const worker = await registry.createWorker(row);
  scene.parts.bell.ring("workers");
  return worker;
}

/** A worker that the loop has started. */
export async function startedWorker(scene: Scene, endpoint: Endpoint): Promise<LiveWorker> {
  scene.run(scene.loops.tend());
  const worker = await wantedWorker(scene, endpoint);
  await scene.advance(5);
  expect(scene.provider.isRunning(worker.row.id)).toBe(true);
  return worker;
}
