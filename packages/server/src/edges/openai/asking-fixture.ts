import { afterAll, beforeAll, beforeEach } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../../memory/registry.js";
import { type Call, type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

export let scene: Scene;
export let http: Http;
export let endpoint: Endpoint;
export let worker: LiveWorker;
/** The path below which OpenAI's routes are. */
export let base: string;

/** Opens a scene for a file of tests, and an endpoint with a worker for each test. */
export function openAsking(): void {
  beforeAll(async () => {
    scene = await Scene.open();
    http = await openHttp(scene);
  });
  beforeEach(async () => {
    endpoint = await scene.endpoint();
    worker = await scene.worker(endpoint);
    base = `/v2/${endpoint.id}/openai`;
  });
  afterAll(async () => {
    await http.close();
    await scene.close();
  });
}

/** Has the test's requests made under /sdk. */
export function askUnderSdk(): void {
  base = `/sdk${base}`;
}

export const chat = "/v1/chat/completions";
export const waiting = () => scene.until(async () => (await scene.health(endpoint)).waiting > 0);

/** Sends a request whose job the worker takes; the answer comes once the worker has reported its result. */
export async function asked(body: unknown, more: Call & { method?: string; path?: string } = {}) {
  const { method = "POST", path = chat, ...call } = more;
  const answer = http.call(method, `${base}${path}`, { ...call, ...(body === undefined ? {} : { body }) });
  await waiting();
  const [job] = await scene.take(worker);
  return { answer, job: job!, id: job!.id };
}
