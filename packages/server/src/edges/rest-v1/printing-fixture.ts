import { afterEach, beforeEach } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../../memory/registry.js";
import { plainSpec, workerChanges } from "../../testing/facts-fixture.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

export let scene: Scene;
export let http: Http;
export let endpoint: Endpoint;
export let worker: LiveWorker;
/** When the worker was started. */
export let now: number;

/** Opens a scene for each test, with an endpoint whose worker runs and can print. */
export function openPrinting(): void {
  beforeEach(async () => {
    scene = await Scene.open();
    http = await openHttp(scene);
    endpoint = await scene.endpoint();
    worker = await running(endpoint);
    now = scene.clock.now();
  });
  afterEach(async () => {
    await http.close();
    await scene.close();
  });
}

export async function running(of: Endpoint): Promise<LiveWorker> {
  const made = await scene.worker(of);
  await scene.provider.start(plainSpec(made.row.id));
  return made;
}

export const say = (text: string, at = now, by = worker) => scene.provider.say(by.row.id, at, text);
export const end = async (of: LiveWorker) => {
  scene.provider.end(of.row.id, { code: 0 });
  await scene.parts.registry.changeWorker(of, { ...workerChanges.end, endedAt: scene.clock.now() });
};
export const ofWorker = (query = "", of = worker) => `/v1/workers/${of.row.id}/logs${query}`;
export const ofEndpoint = (query = "") => `/v1/endpoints/${endpoint.id}/logs${query}`;
