import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../../limits/index.js";
import { type Http, openHttp } from "../../../testing/http-fixture.js";
import { Scene } from "../../../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
beforeEach(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
});
afterEach(async () => {
  await http.close();
  await scene.close();
});

const act = (id: string, verb: string, key?: string) =>
  http.call("POST", `/v1/workers/${id}/${verb}`, key === undefined ? {} : { key });

describe("POST /v1/workers/{id}/stop", () => {
  it("lets a busy worker finish its job, gives it no other, and stops it then", async () => {
    const endpoint = await scene.endpoint({ workersMax: 1 });
    scene.runAll();
    const jobId = await scene.submit(endpoint);
    await scene.advance(1_000);
    const [worker] = scene.workersOf(endpoint);
    expect((await scene.take(worker!)).map(({ id }) => id)).toEqual([jobId]);
    const { status, json } = await act(worker!.row.id, "stop");
    expect([status, json.state, json.why]).toEqual([200, "closing", "stopped by hand"]);
    const audit = (await http.get("/v1/audit?action=worker.stop")).json.entries;
    expect(audit.map(({ resource }: { resource: string }) => resource)).toEqual([worker!.row.id]);
    const next = await scene.submit(endpoint);
    expect(await scene.take(worker!)).toEqual([]);
    await scene.done(worker!, jobId);
    await scene.advance(1_000);
    expect(worker!.row.wanted).toBe("stopped");
    expect(await scene.state(endpoint, jobId)).toBe("COMPLETED");
    expect(await scene.state(endpoint, next)).toBe("IN_QUEUE");
    expect(await act(worker!.row.id, "stop")).toMatchObject({ status: 400, json: { code: "INVALID_STATE" } });
  });

  it("stops a busy worker at once with now=true: its job is started again, and the lost start is not counted", async () => {
    const endpoint = await scene.endpoint({ workersMax: 1 });
    scene.runAll();
    const jobId = await scene.submit(endpoint);
    await scene.advance(1_000);
    const [worker] = scene.workersOf(endpoint);
    await scene.take(worker!);
    expect(await act(worker!.row.id, "stop?now=true")).toMatchObject({ status: 200, json: { state: "stopping" } });
    await scene.advance(limits.stopGraceMsDefault + 1_000);
    expect(worker!.row.endedAt).toBeDefined();
    const next = scene.workersOf(endpoint).find((each) => each !== worker);
    expect((await scene.take(next!)).map(({ id }) => id)).toEqual([jobId]);
    await scene.done(next!, jobId);
    expect(await scene.status(endpoint, jobId)).toMatchObject({ status: "COMPLETED", retries: 0 });
  });

  it("is for those who may change resources, and see the worker", async () => {
    const worker = await scene.worker(await scene.endpoint());
    const { key } = await scene.stranger();
    await scene.addKey("mr_reads", scene.admin.ownerNo, { kind: "readOnly" });
    expect((await act(worker.row.id, "stop", key)).status).toBe(404);
    expect((await act(worker.row.id, "stop", "mr_reads")).status).toBe(401);
    expect(worker.row.wanted).toBe("running");
  });
});

describe("POST /v1/workers/{id}/pause", () => {
  it("pauses an idle worker of a queue endpoint with FlashBoot, and no other", async () => {
    const endpoint = await scene.endpoint({ flashBootType: "FLASHBOOT" });
    const worker = await scene.worker(endpoint);
    expect((await act(worker.row.id, "pause")).json.error).toMatch(/idle worker.*this one is starting/);
    await scene.take(worker);
    const { status, json } = await act(worker.row.id, "pause");
    expect([status, json.state, json.why]).toEqual([200, "paused", "paused by hand"]);
    expect((await act(worker.row.id, "stop")).json).toMatchObject({ state: "stopping", why: "stopped by hand" });
    const other = await scene.worker(await scene.endpoint());
    await scene.take(other);
    expect((await act(other.row.id, "pause")).json.error).toMatch(/with FlashBoot can be paused/);
  });
});
