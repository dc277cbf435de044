import { afterAll, beforeAll, beforeEach } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../../memory/registry.js";
import { loseJob } from "../../operations/jobs/change-job.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

export let scene: Scene;
export let http: Http;
export let endpoint: Endpoint;
export let worker: LiveWorker;

/** Opens a scene for a file of tests, and an endpoint with a worker for each test. */
export function openStreams(): void {
  beforeAll(async () => {
    scene = await Scene.open();
    http = await openHttp(scene);
  });
  beforeEach(async () => {
    endpoint = await scene.endpoint();
    worker = await scene.worker(endpoint);
  });
  afterAll(async () => {
    await http.close();
    await scene.close();
  });
}

export const path = () => `/v2/${endpoint.id}/openai/v1/chat/completions`;
export const done = "data: [DONE]\n\n";

/** A client that reads a stream as it arrives. */
export class Reader {
  readonly #leaving = new AbortController();
  readonly #reply: Promise<Response>;
  text = "";
  isOver = false;

  constructor(headers: Record<string, string> = {}) {
    this.#reply = fetch(http.url + path(), {
      method: "POST",
      headers: { authorization: `Bearer ${scene.key}`, ...headers },
      body: '{"stream": true}',
      signal: this.#leaving.signal,
    });
    void this.#read();
  }

  async #read(): Promise<void> {
    try {
      const decoder = new TextDecoder();
      for await (const part of (await this.#reply).body ?? []) this.text += decoder.decode(part, { stream: true });
    } catch {
      // The client left or the stream broke: the text shows how far it got.
    }
    this.isOver = true;
  }

  leave = () => this.#leaving.abort();
  reply = () => this.#reply;
  says = (text: string) => scene.until(() => this.text === text);
  over = () => scene.until(() => this.isOver);
}

/** A reader whose job was taken. */
export async function streaming(headers?: Record<string, string>) {
  const reader = new Reader(headers);
  await scene.until(async () => (await scene.health(endpoint)).waiting > 0);
  const [job] = await scene.take(worker);
  const say = (output: unknown) => scene.chunk(worker, job!.id, { output });
  return { reader, id: job!.id, say, end: (word: unknown = { output: [] }) => scene.done(worker, job!.id, word) };
}

/** Takes the job from its worker, as if the worker were lost. */
export async function lose(): Promise<void> {
  const [held] = await scene.stores.reader.heldBy(worker.row.no);
  await loseJob(scene.parts, held!, "its worker was lost", false);
}
