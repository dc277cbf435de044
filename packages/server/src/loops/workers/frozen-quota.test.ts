import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../../memory/registry.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

describe("A frozen worker", () => {
  it("does not resume while its user has as many workers as it may: the job says so, and runs when there is room", async () => {
    endpoint = await scene.endpoint({ flashboot: true, idleTimeout: 5, workersMax: 1 });
    await scene.runAll();
    await scene.submit(endpoint);
    await scene.advance(50);
    const worker = scene.workersOf(endpoint)[0] as LiveWorker;
    const [job] = await scene.take(worker);
    await scene.done(worker, job!.id);
    await scene.ping(worker);
    const poll = scene.poll(worker);
    await scene.advance(5_200);
    await poll.answer;
    expect(worker.row.wanted).toBe("paused");

    await scene.quotas({ workers: 1 });
    const other = await scene.endpoint({ workersMax: 1, idleTimeout: 5 });
    const first = await scene.submit(other);
    await scene.advance(50);
    const busy = scene.workersOf(other)[0] as LiveWorker;
    expect(await scene.take(busy)).toMatchObject([{ id: first }]);
    const id = await scene.submit(endpoint);
    await scene.advance(1_000);
    expect(scene.provider.callsOf(worker.row.id)).not.toContain("resume");
    expect(await scene.status(endpoint, id)).toMatchObject({ waitReason: "quota_reached" });
    await scene.done(busy, first);
    await scene.advance(30_000);
    const running = scene.workersOf(endpoint).find(({ row }) => row.wanted === "running") as LiveWorker;
    expect(await scene.take(running)).toMatchObject([{ id }]);
  });
});
