import type { IncomingMessage } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { Scene } from "../../testing/scene-fixture.js";
import { laneOf } from "./lanes.js";

let scene: Scene;
let endpoint: Endpoint;
beforeAll(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
});
afterAll(() => scene.close());

const lane = (url: string, authorization?: string) =>
  laneOf(scene.parts, { url, headers: { authorization } } as IncomingMessage);

describe("The lane of a request", () => {
  it.each([
    ["a job's", (id: string) => `/v2/${id}/run`],
    ["a job's, with an envelope", (id: string) => `/sdk/v2/${id}/status/x`],
    ["a load-balanced one's", (id: string) => `/lb/${id}/generate?x=1`],
  ])("is its owner's, by endpoint: %s", (_, url) => {
    expect(lane(url(endpoint.id), `Bearer ${scene.key}`)).toEqual([scene.admin.ownerNo, endpoint.no]);
  });

  it("is its owner's alone for anything else, whatever endpoint it names", () => {
    for (const url of ["/v1/templates", "/graphql", "/v2/nothing/run", "/nothing"])
      expect(lane(url, scene.key)).toEqual([scene.admin.ownerNo]);
  });

  it("is shared by all requests without a key or with an unknown key", () => {
    for (const key of [undefined, "", "Bearer wrong"]) expect(lane(`/v2/${endpoint.id}/run`, key)).toEqual(["nobody"]);
  });

  it("is separate for health checks, which wait for no other request", () => {
    expect([lane("/healthz"), lane("/readyz"), lane("/healthz?x")]).toEqual([["health"], ["health"], ["nobody"]]);
  });

  it("of a worker is its endpoint's, if its secret is right", async () => {
    const worker = await scene.worker(endpoint);
    const secret = "a worker's own";
    worker.row = { ...worker.row, secretHash: scene.parts.vault.hashKey(secret) };
    const url = `/v2/${endpoint.id}/job-take/${worker.row.id}`;
    const own = [endpoint.ownerNo, endpoint.no];
    expect([lane(url, secret), lane(`${url}?token=${encodeURIComponent(secret)}`)]).toEqual([own, own]);
    expect([lane(url, "wrong"), lane(url)]).toEqual([["nobody"], ["nobody"]]);
    const other = await scene.endpoint();
    expect(lane(`/v2/${other.id}/job-take/${worker.row.id}`, secret)).toEqual(["nobody"]);
  });
});
