import { expect } from "vitest";
import type { HostFacts } from "../../domain/hosts/host.js";
import { made } from "../../edges/rest-v1/answers-fixture.js";
import { l4, plainHost } from "../../testing/facts-fixture.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

// biome-ignore lint/suspicious/noExplicitAny: tests check the body
export type Json = any;

/** What every pod in these tests is made of, unless a test says otherwise. */
export const image = { imageName: "alpine:3", dockerStartCmd: ["sleep", "infinity"] };

/** A server in CZ with one L4, whose pods are asked for over REST. */
export class PodScene {
  scene: Scene;
  http: Http;

  private constructor(scene: Scene, http: Http) {
    this.scene = scene;
    this.http = http;
  }

  static async open(more: Partial<HostFacts> = {}): Promise<PodScene> {
    const facts: HostFacts = { ...plainHost, location: "CZ", gpusEnforced: true, gpus: [l4(1)], ...more };
    const scene = await Scene.open({ here: { facts: () => facts } });
    const http = await openHttp(scene);
    await scene.runAll();
    return new PodScene(scene, http);
  }

  /** Kills the server and starts another one. */
  async restart(): Promise<void> {
    await this.http.close();
    this.scene = await this.scene.restart();
    this.http = await openHttp(this.scene);
    await this.scene.runAll();
  }

  async close(): Promise<void> {
    await this.http.close();
    await this.scene.close();
  }

  async create(body: object = {}, key?: string): Promise<Json> {
    const call = key === undefined ? {} : { key };
    const { status, json, text } = await this.http.post("/v1/pods", { ...image, ...body }, call);
    expect(status, text).toBe(201);
    return json;
  }
  show = (id: string): Promise<Json> => made(this.http.get(`/v1/pods/${id}`));
  act = (id: string, what: string): Promise<Json> => made(this.http.post(`/v1/pods/${id}/${what}`, undefined));
  change = (id: string, body: object): Promise<Json> => made(this.http.call("PATCH", `/v1/pods/${id}`, { body }));
  passed = (ms = 50): Promise<void> => this.scene.advance(ms);
  podOf = (id: string) => this.scene.parts.registry.pod(id)!;
  workerOf = (id: string) => this.scene.workersOf(this.podOf(id))[0]!;
  get launches() {
    return this.scene.provider.launches;
  }
  /** The container of a pod ends by itself. */
  end = (id: string, code = 1): void => this.scene.provider.end(this.workerOf(id).row.id, { code });
  /** The container that was told to stop has stopped. */
  async stopped(id: string): Promise<void> {
    await this.passed();
    for (const { row } of this.scene.workersOf(this.podOf(id)))
      if (row.wanted === "stopped") this.scene.provider.end(row.id, { code: 0 });
    await this.passed();
  }
}
