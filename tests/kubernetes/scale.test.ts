import { expect, it } from "vitest";
import { runScale } from "../../scripts/kubernetes/scale-run.mjs";
import { clusterStartMs } from "./scene.js";

it("Workers by the dozen start and end in simulated nodes, each once, and no job is lost in trouble", {
  timeout: clusterStartMs,
}, async () => {
  const { workers, jobs, watchMs } = await runScale({ endpoints: 4, workersOfEach: 6, isTroubled: true });
  expect(workers).toBe(24);
  expect(jobs?.all).toBeGreaterThan(20);
  expect(jobs?.again).toBe(0);
  expect(watchMs).toBeGreaterThan(0);
});
