import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApiKey } from "../domain/access/key.js";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import { findWorker } from "../operations/workers/find-worker.js";
import { l4, plainHost } from "../testing/facts-fixture.js";
import { type Http, openHttp } from "../testing/http-fixture.js";
import { Scene } from "../testing/scene-fixture.js";

/** A GPU that an endpoint's worker holds, and two endpoints whose jobs and requests wait for it. */
let scene: Scene;
let http: Http;
let holder: Endpoint;
let waiting: Endpoint;
let balanced: Endpoint;
let bound: ApiKey;
let jobId: string;
beforeAll(async () => {
  const facts = { ...plainHost, gpusEnforced: true, gpus: [l4(1)] };
  scene = await Scene.open({ here: { facts: () => facts } });
  await scene.runAll();
  holder = await scene.endpoint({ workersMin: 1 });
  await scene.advance(50);
  waiting = await scene.endpoint({});
  balanced = await scene.endpoint({ type: "LB", workersMin: 1 });
  const access = { [waiting.id]: "run", [balanced.id]: "run" } as const;
  bound = await scene.addKey("mr_bound", scene.admin.ownerNo, { kind: "endpoints", access });
  jobId = await scene.submit(waiting);
  await scene.advance(50);
  http = await openHttp(scene, { rates: undefined });
});
afterAll(async () => {
  await http?.close();
  await scene?.close();
});

const placesThatSay: [string, () => string][] = [
  ["a job's status", () => `/v2/${waiting.id}/status/${jobId}`],
  ["the list of jobs", () => `/v2/${waiting.id}/requests`],
  ["the workers", () => `/v1/endpoints/${waiting.id}/workers`],
  ["a worker", () => `/v1/workers/${scene.workersOf(waiting)[0]?.row.id}`],
  ["the endpoints with their workers", () => "/v1/endpoints?includeWorkers=true"],
  ["a version", () => `/v1/endpoints/${waiting.id}/releases`],
];

describe("Who holds what a worker waits for", () => {
  it.each(placesThatSay)(
    "is named by %s to the user's own key, and not to a key of other endpoints",
    async (_, path) => {
      const textFor = async (key: string) => (await http.get(path(), { key })).text;
      const named = `held by worker ${scene.workersOf(holder)[0]?.row.id} of endpoint ${holder.id}`;
      expect(await textFor(scene.key)).toContain(named);
      const said = await textFor("mr_bound");
      expect(said).toContain("held by another worker");
      expect(said).not.toContain(holder.id);
    },
  );

  it("is not named to such a key by a request that found no worker", async () => {
    const search = { isSocket: false, untilAt: scene.clock.now(), gone: scene.stays };
    const why = async (scope: ApiKey["scope"]) => {
      const refused = findWorker(scene.parts, balanced, { ...search, scope }).catch((error: Error) => error.message);
      await scene.advance(10);
      return refused;
    };
    expect(await why(scene.admin.scope)).toContain(holder.id);
    expect(await why(bound.scope)).toMatch(/held by another worker\./);
  });
});
