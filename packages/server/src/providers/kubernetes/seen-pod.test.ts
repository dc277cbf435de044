import type { Pod, PodStatus } from "kubernetes-types/core/v1.js";
import { describe, expect, it } from "vitest";
import { StartFailed } from "../../provider.js";
import { seenPod, sightingOf } from "./seen-pod.js";
import { Patience, waitingFor } from "./waiting.js";

const workerId = "worker00000001";
const podWith = (status: PodStatus, nodeName?: string): Pod => ({
  metadata: { name: `millrace-${workerId}`, uid: "u1", labels: { "millrace.worker": workerId } },
  spec: { containers: [], ...(nodeName === undefined ? {} : { nodeName }) },
  status,
});
const container = { name: "worker", image: "i", imageID: "sha256:1", ready: false, restartCount: 0 };
const ended = (exitCode: number, reason = "Error", message = ""): PodStatus => ({
  phase: "Failed",
  containerStatuses: [{ ...container, state: { terminated: { exitCode, reason, message } } }],
});
const disrupted = (reason: string, status: PodStatus): PodStatus => ({
  ...status,
  conditions: [{ type: "DisruptionTarget", status: "True", reason, message: "so it is" }],
});
const look = (status: PodStatus, isOurs = false) => sightingOf(seenPod(podWith(status)), isOurs);

it.each(["10.0.0.7", "fd00::7"])("A pod that runs is reached at its address: %s", (podIP) => {
  const status = { phase: "Running", podIP, containerStatuses: [{ ...container, state: { running: {} } }] };
  expect(look(status)).toMatchObject({
    state: "running",
    handle: { network: { reachedFrom: "anywhere", address: podIP } },
  });
});

describe("A pod that has ended is seen with how it ended:", () => {
  it.each<[string, PodStatus, object]>([
    ["by itself", ended(3), { code: 3 }],
    ["by a signal", ended(139), { signal: "SIGSEGV" }],
    ["without memory", ended(137, "OOMKilled"), { signal: "SIGKILL", cause: "memory" }],
    ["killed, but not by us", ended(137), { signal: "SIGKILL", cause: "memory" }],
    [
      "killed because it did not stop",
      { ...ended(137), reason: "DeadlineExceeded" },
      { signal: "SIGKILL", cause: "host", note: expect.stringContaining("within its grace") },
    ],
    ["without its program", ended(127), { code: 127, cause: "image" }],
    [
      "never started",
      ended(128, "StartError", "exec: no such file"),
      { cause: "image", note: expect.stringContaining("no such file") },
    ],
    [
      "preempted",
      disrupted("PreemptionByScheduler", ended(143)),
      { signal: "SIGTERM", cause: "host", note: expect.stringContaining("higher priority (so it is)") },
    ],
    [
      "evicted before it ran",
      { phase: "Failed", reason: "Evicted", message: "The node was low on memory." },
      { cause: "host", note: "its node evicted it (The node was low on memory.)" },
    ],
    [
      "refused by its node",
      { phase: "Failed", reason: "OutOfcpu", message: "no cpu" },
      { cause: "host", note: "its pod failed: OutOfcpu: no cpu" },
    ],
  ])("%s", (_, status, exit) => {
    expect(look(status)).toMatchObject({ state: "ended", exit });
  });

  it("by its own container, whatever else the cluster has added to it", () => {
    const proxy = { ...container, name: "istio-proxy", imageID: "sha256:2", state: { running: {} } };
    const waiting = {
      ...container,
      imageID: "",
      state: { waiting: { reason: "ImagePullBackOff", message: "no such tag" } },
    };
    const seen = seenPod(podWith({ phase: "Pending", containerStatuses: [proxy, waiting] }));
    expect(seen).toMatchObject({ isRunning: false, hasImage: false, waiting: { reason: "ImagePullBackOff" } });
    const over = { ...container, state: { terminated: { exitCode: 3 } } };
    expect(look({ phase: "Running", containerStatuses: [proxy, over] })).toMatchObject({
      state: "ended",
      exit: { code: 3 },
    });
    expect(look({ phase: "Running", containerStatuses: [proxy] })).toMatchObject({ state: "unknown" });
  });

  it("once something else has deleted it, which is not its doing", () => {
    const pod = podWith(ended(137));
    const deleted = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
    const exit = { signal: "SIGKILL", cause: "host", note: "its pod was deleted by something else" };
    expect(sightingOf(seenPod(deleted), false)).toEqual({ state: "ended", exit });
    const failed = { ...deleted, status: ended(137, "OOMKilled") };
    expect(sightingOf(seenPod(failed), false)).toMatchObject({ exit: { cause: "memory" } });
    const inOrder = sightingOf(seenPod({ ...deleted, status: ended(0) }), false);
    expect(inOrder).toMatchObject({ exit: { code: 0, cause: "host" } });
  });

  it("killed by us, without a reason of the cluster's", () => {
    expect(look(disrupted("DeletionByTaintManager", ended(137)), true)).toEqual({
      state: "ended",
      exit: { signal: "SIGKILL" },
    });
  });
});

it("A pod that has not started is no worker yet, and may be made again", () => {
  expect(look({ phase: "Pending" })).toMatchObject({ state: "unknown", isAbsent: true });
});

describe("A pod that waits says", () => {
  const awaited = { image: "me/worker:1" };
  const waiting = (reason: string, message: string): PodStatus => ({
    phase: "Pending",
    conditions: [{ type: "PodScheduled", status: "True" }],
    containerStatuses: [{ ...container, imageID: "", state: { waiting: { reason, message } } }],
  });
  const unplaced = (reason: string, message: string): PodStatus => ({
    phase: "Pending",
    conditions: [{ type: "PodScheduled", status: "False", reason, message }],
  });
  it.each<[string, PodStatus, RegExp]>([
    [
      "that no node has room",
      unplaced("Unschedulable", "0/3 nodes:  too\nfew"),
      /no node .* room for it: 0\/3 nodes: too few$/,
    ],
    [
      "that its volume has no storage",
      unplaced("Unschedulable", "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"),
      /^its volume cannot be mounted yet: 0\/1 nodes are available: pod has unbound/,
    ],
    ["that a secret is missing", waiting("CreateContainerConfigError", 'secret "x" not found'), /secret "x" not found/],
    [
      "what a registry's words mean",
      waiting("ErrImagePull", "unauthorized"),
      /cannot be pulled yet: .*asks for credentials .* \(unauthorized\)/,
    ],
    ["what a registry says", waiting("ErrImagePull", "it is a teapot"), /cannot be pulled yet: it is a teapot$/],
    ["that its node pulls", waiting("ContainerCreating", ""), /node n1 pulls the image 'me\/worker:1'/],
    ["that it has just been made", { phase: "Pending" }, /looks for a node/],
  ])("%s", (_, status, words) => {
    const isPlaced = !JSON.stringify(status).includes('"False"') && status.conditions !== undefined;
    expect(waitingFor(seenPod(podWith(status, isPlaced ? "n1" : undefined)), awaited)).toMatch(words);
  });

  it("that a queue holds it, and not that its own credentials are on their way", () => {
    const words = (...gates: string[]) => {
      const pod = podWith(unplaced("SchedulingGated", ""));
      const spec = { containers: [], schedulingGates: gates.map((name) => ({ name })) };
      return waitingFor(seenPod({ ...pod, spec }), awaited);
    };
    expect(words("kueue.x-k8s.io/admission", "millrace/credentials")).toMatch(/a queue of the cluster/);
    for (const none of [["millrace/credentials"], []]) expect(words(...none)).toBe("the cluster looks for a node");
  });

  it("that its volume has no storage only where it waits for that, and not for a node", () => {
    const words = (message: string) =>
      waitingFor(seenPod(podWith(unplaced("Unschedulable", message))), awaited, { noVolume: "its volume has none" });
    expect(words("running PreBind plugin VolumeBinding: binding volumes: timed out")).toBe("its volume has none");
    expect(words("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")).toMatch(
      /^no node of the cluster has room/,
    );
  });

  it.each([
    ["the node of its volume is full", "1 Insufficient cpu, 2 node(s) didn't match PersistentVolume's node affinity."],
    ["the node of its volume's workers is full", "1 Insufficient cpu, 2 node(s) didn't match pod affinity rules."],
  ])("that its volume keeps it to some nodes, where %s", (_, lacks) => {
    const seen = seenPod(podWith(unplaced("Unschedulable", `0/3 nodes are available: ${lacks}`)));
    const words = (hasVolume: boolean) => waitingFor(seen, awaited, { hasVolume });
    expect(words(true)).toBe(
      `no node of the cluster that can mount its volume has room for it: 0/3 nodes are available: ${lacks}`,
    );
    expect(words(false)).toMatch(/^no node of the cluster has room for it: /);
  });

  it.each([
    [["NVIDIA L4"], undefined, "NVIDIA L4"],
    [["NVIDIA L4", "NVIDIA A40"], "12.8", "NVIDIA L4 or NVIDIA A40 and a driver for CUDA 12.8"],
    [["A", "B", "C", "D"], undefined, "A or B or C or others"],
    [[], "12.8", "a driver for CUDA 12.8"],
  ])("which GPUs a node must have: %j, CUDA %s", (types, minCuda, words) => {
    const lacks = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.";
    const seen = seenPod(podWith(unplaced("Unschedulable", lacks)));
    expect(waitingFor(seen, awaited, { gpuWish: { count: 1, types, minCuda } })).toBe(
      `no node of the cluster with ${words} has room for it: ${lacks}`,
    );
    expect(waitingFor(seen, awaited, { gpuWish: { count: 1, types: [] } })).toMatch(/^no node of the cluster has room/);
  });

  it("no credentials that a registry repeats", () => {
    const auth = { username: "someone", password: "word-of-someone" };
    const seen = seenPod(podWith(waiting("ErrImagePull", "denied: someone may not enter with word-of-someone"), "n1"));
    expect(waitingFor(seen, { ...awaited, auth })).toMatch(/does not accept .* \(denied: … may not enter with …\)$/);
  });

  it("in the registry's words why its image cannot be pulled, once that has lasted", () => {
    const patience = new Patience(awaited, 30_000);
    const at = (now: number, status: PodStatus) => patience.failure(seenPod(podWith(status)), now);
    expect(at(0, waiting("ErrImagePull", "manifest unknown"))).toBeUndefined();
    expect(at(12_000, waiting("ImagePullBackOff", "Back-off pulling image"))).toBeUndefined();
    const failure = at(30_000, waiting("ImagePullBackOff", "Back-off pulling image"));
    expect(failure).toBeInstanceOf(StartFailed);
    expect(failure).toMatchObject({
      blame: "image",
      message: expect.stringContaining("no such image or tag (manifest"),
    });
  });

  it("what its node says of it, once that has lasted, unless it passes by itself", () => {
    const said = (message: string) => {
      const patience = new Patience(awaited, 30_000);
      const at = (now: number) =>
        patience.failure(seenPod(podWith(waiting("CreateContainerError", message), "n1")), now);
      return [at(0), at(119_000), at(120_000)?.message];
    };
    expect(said("no command specified")).toEqual([
      undefined,
      undefined,
      "its pod cannot be started: no command specified",
    ]);
    for (const passes of ['secret "x" not found', "context deadline exceeded"])
      expect(said(passes)).toEqual([undefined, undefined, undefined]);
  });

  it("at once that its image's name is none", () => {
    const failure = new Patience(awaited, 30_000).failure(seenPod(podWith(waiting("InvalidImageName", "bad"))), 0);
    expect(failure).toMatchObject({ blame: "image" });
  });
});
