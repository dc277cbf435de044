import { mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { updateEndpoint } from "../../operations/endpoints/save-endpoint.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let endpoint: Endpoint;
let job: string;
beforeEach(async () => {
  scene = await Scene.open();
  write("handler.py", 1);
  endpoint = await scene.endpoint({ workersMax: 1 });
  scene.run(scene.loops.scale(), scene.loops.tend());
  job = await scene.submit(endpoint);
  await scene.advance(50);
});
afterEach(() => scene.close());

/** Writes a file in the handler's folder, with this second as its time. */
function write(name: string, at: number): void {
  const path = join(scene.directory, name);
  writeFileSync(path, `${at}`);
  utimesSync(path, at, at);
}
const starts = () => scene.provider.launches.length;
/** Lets the worker end at its start. */
async function crash(): Promise<void> {
  const [worker] = scene.workersOf(endpoint);
  scene.provider.end(worker!.row.id, { code: 1 });
  await scene.advance(5);
}
/** After this, the pause before the next start is 64 s. */
async function crashSevenTimes(): Promise<void> {
  for (let n = 0; n < 7; n++) {
    await crash();
    if (n < 6) await scene.advance(1_000 * 2 ** n + 50);
  }
  expect(starts()).toBe(7);
}
const detail = async () => (await scene.status(endpoint, job)).waitDetail;

describe("The pause after workers that ended at their start", () => {
  it("is shown with its remaining time, and lasts in full if nothing changes", async () => {
    await crashSevenTimes();
    await scene.advance(10_000);
    expect(await detail()).toMatch(/^The last 7 workers ended at their start; the next one is started in 54 s, and /);
    await scene.advance(53_000);
    expect(starts()).toBe(7);
    await scene.advance(2_000);
    expect(starts()).toBe(8);
  });

  it.each([
    ["is saved", "handler.py"],
    ["gets a file", "model/weights.py"],
  ])("ends at once when the local handler %s", async (_, name) => {
    await crashSevenTimes();
    await scene.advance(10_000);
    mkdirSync(join(scene.directory, "model"), { recursive: true });
    write(name, 2);
    await scene.advance(1_100);
    expect(starts()).toBe(8);
    expect(scene.now(endpoint).failedStarts).toBe(7);
    // The change did not help: the next pause has its usual length.
    await crash();
    await scene.advance(100_000);
    expect(starts()).toBe(8);
  });

  it("ends when a missing folder is back", async () => {
    rmSync(join(scene.directory, "handler.py"));
    await crashSevenTimes();
    write("handler.py", 1);
    await scene.advance(1_100);
    expect(starts()).toBe(8);
  });

  it("continues if only files that programs keep beside a handler change", async () => {
    await crashSevenTimes();
    mkdirSync(join(scene.directory, "__pycache__"));
    write("__pycache__/handler.pyc", 2);
    write(".state", 2);
    await scene.advance(10_000);
    expect(starts()).toBe(7);
  });

  it("is checked once a second, however often its workers are", async () => {
    await crashSevenTimes();
    await scene.advance(10_000);
    write("handler.py", 2);
    scene.parts.bell.ring("workers");
    await scene.advance(5);
    expect(starts()).toBe(7);
    await scene.advance(1_100);
    expect(starts()).toBe(8);
  });

  it("ends later and later if something else writes to the folder all the time", async () => {
    await crashSevenTimes();
    for (let second = 0; second < 30; second++) {
      write("out.log", second);
      await scene.advance(1_000);
      if (scene.workersOf(endpoint).length > 0) await crash();
    }
    // Ends after 1, 2, 4 and 8 s.
    expect(starts()).toBe(11);
  });

  it("of a handler whose folder does not change ends with any save of its endpoint", async () => {
    await crashSevenTimes();
    await updateEndpoint(scene.parts, scene.admin, scene.now(endpoint), { name: "another" });
    await scene.advance(100);
    expect(starts()).toBe(8);
  });
});
