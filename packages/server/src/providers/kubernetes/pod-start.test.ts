import type { Pod } from "kubernetes-types/core/v1.js";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { realTime } from "../../clock.js";
import { limits } from "../../limits/index.js";
import type { ImageSpec } from "../../provider.js";
import { ClusterRefusal } from "./api-server/cluster.js";
import { podOf } from "./pod.js";
import type { PodEvents } from "./pod-events.js";
import { PodStart } from "./pod-start.js";
import type { PodWatch } from "./pod-watch.js";
import { type Pods, SecretRefused } from "./pods.js";
import { type SeenPod, seenPod } from "./seen-pod.js";

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

/** Events in which nodes say this of every pod. */
function saying(words?: string): { autoscalers: PodEvents; nodes: PodEvents } {
  const nothing = { of: async () => undefined } as unknown as PodEvents;
  const of = async () => ({ isAsked: false, words });
  return { autoscalers: nothing, nodes: words === undefined ? nothing : ({ of } as unknown as PodEvents) };
}

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
  const others = { starting, said: saying(), pullMs: 60_000, lastWords: async () => {} };
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
  const others = { starting, said: saying(), pullMs: 60_000, lastWords: async () => {} };
  const start = new PodStart(pods as unknown as Pods, watch as unknown as PodWatch, spec, others);
  expect(await start.run()).toMatchObject({ uid: "u1", isRunning: true });
  expect(pods.ensureClaims).toHaveBeenCalledTimes(1);
});

it.each([
  ["runs", { running: {} }],
  ["has run", { terminated: { exitCode: 0 } }],
  ["has not run in time", undefined],
])("Of a pod whose start is given up, what it has said is kept once its node says that it %s", async (_, state) => {
  const pod: Pod = { ...podOf(spec, settings), metadata: { ...podOf(spec, settings).metadata, uid: "u1" } };
  const placed: Pod = { ...pod, spec: { ...pod.spec!, nodeName: "n1" }, status: { phase: "Pending" } };
  const container = { name: "worker", image: "i", imageID: "sha256:1", ready: false, restartCount: 0 };
  const told = state && { ...placed, status: { phase: "Running", containerStatuses: [{ ...container, state }] } };
  const done: string[] = [];
  const pods = {
    make: async () => placed,
    find: async () => placed,
    kill: async () => done.push("killed"),
    volumeTrouble: async () => undefined,
  };
  const clock = vi.spyOn(realTime, "monotonicMs").mockReturnValue(0);
  let looks = 0;
  const next = async (_: string, ms: number) => {
    wanted.abort();
    if (looks++ > 0 && !told) clock.mockReturnValue(realTime.monotonicMs() + ms);
    return true;
  };
  const watch = { get: () => (looks > 1 && told ? seenPod(told) : undefined), next };
  const starting = { note: () => {}, reached: () => {}, signal: wanted.signal };
  const lastWords = async (seen: SeenPod) => void done.push(`kept, running: ${seen.isRunning}`);
  const others = { starting, said: saying(), pullMs: 60_000, lastWords };
  const start = new PodStart(pods as unknown as Pods, watch as unknown as PodWatch, spec, others);
  await expect(start.run()).rejects.toThrow("it is not wanted any more");
  const isRunning = state !== undefined && "running" in state;
  expect(done).toEqual([`kept, running: ${isRunning}`, "killed"]);
});

it("What a node says of a pod that does not get on is told after a while", async () => {
  const at = vi.spyOn(realTime, "monotonicMs").mockReturnValue(0);
  const pod: Pod = { ...podOf(spec, settings), metadata: { ...podOf(spec, settings).metadata, uid: "u1" } };
  const stuck: Pod = { ...pod, spec: { ...pod.spec!, nodeName: "n1" }, status: { phase: "Pending" } };
  const pods = {
    make: async () => stuck,
    find: async () => stuck,
    kill: async () => true,
    volumeTrouble: async () => undefined,
  };
  const next = async (_: string, ms: number) => {
    at.mockReturnValue(wanted.signal.aborted ? realTime.monotonicMs() + ms : notes.length * limits.podSlowMs);
    if (notes.length === 2) wanted.abort();
    return false;
  };
  const watch = { get: () => undefined, next };
  const starting = { note: (words: string) => void notes.push(words), reached: () => {}, signal: wanted.signal };
  const others = {
    starting,
    said: saying("MountVolume.SetUp failed:\n no such share"),
    pullMs: 60_000,
    lastWords: async () => {},
  };
  const start = new PodStart(pods as unknown as Pods, watch as unknown as PodWatch, spec, others);
  await expect(start.run()).rejects.toThrow("it is not wanted any more");
  expect(notes).toEqual([
    "node n1 pulls the image 'busybox:1', or mounts its volume",
    "node n1 cannot start its pod yet: MountVolume.SetUp failed: no such share",
  ]);
});
