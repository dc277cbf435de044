import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { type Health, nextHealth, type PingAnswer, unknownHealth } from "../../domain/workers/health.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { Scene } from "../../testing/scene-fixture.js";
import { hearHealth, judgeHealth } from "./hear-health.js";
import { closeWorker } from "./worker-life.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
let health: Health;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint({ type: "LB", executionTimeoutMs: 600_000 });
  worker = await scene.worker(endpoint);
  health = unknownHealth;
});
afterEach(() => scene.close());

async function hear(...answers: PingAnswer[]): Promise<void> {
  for (const answer of answers) {
    health = nextHealth(health, answer, scene.clock.now());
    await hearHealth(scene.parts, worker, health);
  }
}
const judge = () => judgeHealth(scene.parts, worker, health);
const isOpen = () => scene.parts.gate.isOpen(worker.row.no);

describe("A worker's health", () => {
  it("makes it ready with the first 200, and proves its version", async () => {
    await hear("failed", "initialising");
    expect([isOpen(), worker.row.readyAt]).toEqual([false, undefined]);
    await hear("ready");
    expect([isOpen(), worker.row.readyAt]).toEqual([true, scene.clock.now()]);
    expect(scene.now(endpoint).provenVersion).toBe(worker.row.version);
  });

  it("takes it out of the rotation at the third failure in a row, reports that, and brings it back", async () => {
    await hear("ready", "failed", "failed");
    expect([isOpen(), worker.row.trouble]).toEqual([true, undefined]);
    await hear("failed");
    expect([isOpen(), worker.row.trouble?.why]).toEqual([false, expect.stringMatching(/ping/)]);
    await hear("ready");
    expect([isOpen(), worker.row.trouble]).toEqual([true, undefined]);
  });

  it("is not judged while it cannot be asked: it is shut at the third time, said once, and never replaced", async () => {
    const away = (detail: string) => ({ unreached: "there is no way to it", detail });
    await hear("ready", away("1"), away("2"));
    expect([isOpen(), worker.row.trouble]).toEqual([true, undefined]);
    await hear(away("3"), away("4"), away("5"));
    expect([isOpen(), worker.row.trouble?.why]).toEqual([false, "it cannot be reached: there is no way to it"]);
    const said = scene.events.filter((event) => JSON.stringify(event).includes("there is no way to it"));
    expect(said).toMatchObject([{ message: expect.stringContaining("(3)") }]);
    await scene.advance(10 * limits.healthPatienceMs);
    await judge();
    expect(worker.row.wanted).toBe("running");
    await hear("ready");
    expect([isOpen(), worker.row.trouble]).toEqual([true, undefined]);
  });

  it("does not open a worker that a request has just found unreachable", async () => {
    await hear("ready");
    scene.parts.gate.shut(worker.row.no);
    await hear({ unreached: "there is no way to it", detail: "" });
    expect(isOpen()).toBe(false);
  });

  it("has it replaced if it does not recover", async () => {
    await hear("ready", "failed", "failed", "failed");
    expect(await judge()).toBe(scene.clock.now() + limits.healthPatienceMs);
    await scene.advance(limits.healthPatienceMs - 1);
    await judge();
    expect(worker.row.wanted).toBe("running");
    await scene.advance(1);
    await judge();
    expect(worker.row.wanted).toBe("stopped");
  });

  it("may be bad for longer while the worker has requests, because it may be too busy to answer", async () => {
    await hear("ready");
    scene.parts.gate.take(endpoint.no, false);
    await hear("failed", "failed", "failed");
    await scene.advance(599_999);
    await judge();
    expect(worker.row.wanted).toBe("running");
    await scene.advance(1);
    await judge();
    expect(worker.row.wanted).toBe("stopped");
  });

  it("is judged by its own host: a server that cannot reach a worker does not stop it", async () => {
    worker.row = { ...worker.row, hostNo: worker.row.hostNo + 1 };
    await hear("ready", "failed", "failed", "failed");
    await scene.advance(10 * limits.healthPatienceMs);
    expect(await judge()).toBeUndefined();
    expect([isOpen(), worker.row.wanted, worker.row.trouble]).toEqual([false, "running", undefined]);
  });
});

describe("A worker that is replaced", () => {
  it("keeps its WebSockets for 30 s", async () => {
    await hear("ready");
    scene.parts.gate.take(endpoint.no, true);
    await closeWorker(scene.parts, worker, "version 2 replaces it");
    await scene.advance(limits.gateDrainMs - 1);
    await judge();
    expect(worker.row.wanted).toBe("closed");
    await scene.advance(1);
    await judge();
    expect(worker.row.wanted).toBe("stopped");
  });

  it("keeps its requests for executionTimeoutMs", async () => {
    await hear("ready");
    scene.parts.gate.take(endpoint.no, false);
    await closeWorker(scene.parts, worker, "version 2 replaces it");
    expect(scene.parts.gate.take(endpoint.no, false)).toBeUndefined();
    await scene.advance(599_999);
    await judge();
    expect(worker.row.wanted).toBe("closed");
    await scene.advance(1);
    await judge();
    expect(worker.row.wanted).toBe("stopped");
  });
});
