import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { stringOf } from "../../json/json.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { secretOf } from "../../testing/scene-acts-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
let worker: LiveWorker;
let id: string;
beforeEach(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
  id = await scene.running(endpoint, worker);
});
afterEach(async () => {
  await http.close();
  await scene.close();
});

async function post(name: string, output: unknown): Promise<void> {
  const path = `/v2/${endpoint.id}/job-stream/${worker.row.id}/${id}?isStream=false&chunk=${name}`;
  expect((await http.post(path, { output }, { key: secretOf(worker) })).status).toBe(200);
}
async function stored(): Promise<unknown[]> {
  const { no } = (await scene.stores.reader.find({ endpointNo: endpoint.no, jobId: id, now: scene.clock.now() }))!;
  return (await scene.stores.chunks.read({ jobNo: no, fromIndex: 0, bytesMax: 100_000 })).map(({ output }) =>
    JSON.parse(stringOf(output)),
  );
}

describe("A chunk that its worker has named", () => {
  it("is stored once, however often it comes", async () => {
    for (const n of [1, 1, 2, 2, 2, 3]) await post(`run-${n}`, n);
    expect(await stored()).toEqual([1, 2, 3]);
  });

  it("is stored once even if the server was killed before it answered", async () => {
    for (const n of [1, 2]) await post(`run-${n}`, n);
    await http.close();
    scene = await scene.restart();
    http = await openHttp(scene);
    for (const n of [2, 3]) await post(`run-${n}`, n);
    expect(await stored()).toEqual([1, 2, 3]);
  });

  it("is treated as unnamed if the name is invalid", async () => {
    const names = ["", "a%20b", "%00", "x".repeat(limits.chunkNameCharsMax + 1), "a&chunk=a"];
    for (const name of names) for (let n = 0; n < 2; n++) await post(name, name);
    expect(await stored()).toEqual(names.flatMap((name) => [name, name]));
  });
});
