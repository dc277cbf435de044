import type { Pod } from "kubernetes-types/core/v1.js";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { realTime } from "../../clock.js";
import type { ImageSpec } from "../../provider.js";
import { ClusterRefusal } from "./api-server/cluster.js";
import { podOf } from "./pod.js";
import { PodStart } from "./pod-start.js";
import type { PodWatch } from "./pod-watch.js";
import { type Pods, SecretRefused } from "./pods.js";
import type { ScaleUps } from "./scale-ups.js";

const spec: ImageSpec = {
  workerId: "worker00000001",
  from: { image: "busybox:1" },
  entrypoint: [],
  command: [],
  env: {},
  mounts: [],
};
const settings = {
  installation: "a",
  graceMs: 1_000,
  gpuResource: "nvidia.com/gpu",
  gpuLabel: "nvidia.com/gpu.product",
  additions: {},
};

let pauses: number[];
let notes: string[];
let wanted: AbortController;
beforeEach(() => {
  [pauses, notes, wanted] = [[], [], new AbortController()];
  vi.spyOn(realTime, "sleep").mockImplementation(async (ms) => {
    pauses.push(ms);
    if (pauses.length === 5) wanted.abort();
  });
});
afterEach(() => vi.restoreAllMocks());

it("A secret that a quota refuses is waited for in growing pauses, though its pod was admitted and is there for a moment", async () => {
  const there: Pod = podOf(spec, settings);
  const pods = {
    make: vi.fn(async () => {
      throw new SecretRefused(new ClusterRefusal(403, "Forbidden", "exceeded quota: secrets=4"));
    }),
    find: async () => ({
      ...there,
      metadata: { ...there.metadata, uid: "u1", deletionTimestamp: "2026-01-01T00:00:00Z" },
    }),
    kill: async () => true,
    untilGone: async () => true,
  };
  const starting = { note: (words: string) => void notes.push(words), reached: () => {}, signal: wanted.signal };
  const others = { starting, scaleUps: {} as ScaleUps, pullMs: 60_000 };
  const start = new PodStart(pods as unknown as Pods, {} as PodWatch, spec, others);
  await expect(start.run()).rejects.toThrow("it is not wanted any more");
  expect(pods.make).toHaveBeenCalledTimes(5);
  expect(notes).toEqual(new Array(5).fill("the cluster does not admit its pod's secret: exceeded quota: secrets=4"));
  expect(pauses[1]).toBe(2 * (pauses[0] as number));
});

it("A claim that has gone while its pod waits is made again", async () => {
  const pod: Pod = { ...podOf(spec, settings), metadata: { ...podOf(spec, settings).metadata, uid: "u1" } };
  const waits = (message: string): Pod => ({
    ...pod,
    status: {
      phase: "Pending",
      conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }],
    },
  });
  const container = {
    name: "worker",
    image: "i",
    imageID: "sha256:1",
    ready: true,
    restartCount: 0,
    state: { running: {} },
  };
  let now = waits('persistentvolumeclaim "millrace-volume-v1" not found');
  const pods = {
    make: async () => now,
    find: async () => now,
    ensureClaims: vi.fn(async () => {
      now = { ...pod, status: { phase: "Running", containerStatuses: [container] } };
    }),
    volumeTrouble: async () => undefined,
  };
  const watch = { get: () => undefined, next: async () => false };
  const starting = { note: (words: string) => void notes.push(words), reached: () => {}, signal: wanted.signal };
  const others = { starting, scaleUps: { of: async () => undefined } as unknown as ScaleUps, pullMs: 60_000 };
  const start = new PodStart(pods as unknown as Pods, watch as unknown as PodWatch, spec, others);
  expect(await start.run()).toMatchObject({ uid: "u1", isRunning: true });
  expect(pods.ensureClaims).toHaveBeenCalledTimes(1);
});
