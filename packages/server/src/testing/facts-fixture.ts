import type { User } from "../domain/access/user.js";
import { type TemplateSettings, templateDefaults } from "../domain/endpoints/template.js";
import type { Gpu } from "../domain/hosts/gpu.js";
import type { HostFacts } from "../domain/hosts/host.js";
import type { Worker } from "../domain/workers/worker.js";
import type { WorkerChange, WorkerEvent } from "../domain/workers/worker-life.js";
import type { WorkerSpec } from "../provider.js";
import type { NewKey, NewRelease } from "../store/index.js";

/** A machine without GPUs, in no location. */
export const plainHost: HostFacts = { location: undefined, gpus: [], gpusEnforced: false, cpus: 8, memoryMib: 16_384 };

/** A GPU of the kind that most tests use. */
export const l4 = (index: number): Gpu => ({
  id: `GPU-${index}`,
  index,
  name: "NVIDIA L4",
  memoryMib: 23_034,
  driver: "570",
});

export const plainTemplate: TemplateSettings = { ...templateDefaults, name: "template", imageName: "/handler" };

/** A version with plain settings. */
export const plainRelease: NewRelease = { template: plainTemplate, madeAt: 1 };

/** A worker whose row was just created. */
export const newWorker: Worker = {
  no: 1,
  id: "worker00000001",
  endpointNo: 1,
  version: 1,
  hostNo: 1,
  wanted: "running",
  secretHash: undefined,
  handle: undefined,
  workerUrl: undefined,
  resources: undefined,
  address: undefined,
  createdAt: 1,
  throttledAt: undefined,
  placedAt: undefined,
  imageAt: undefined,
  madeAt: undefined,
  startedAt: undefined,
  readyAt: undefined,
  outputAt: undefined,
  pausedAt: undefined,
  resumedAt: undefined,
  pausedMs: 0,
  closedAt: undefined,
  stopAt: undefined,
  askedAt: undefined,
  killAt: undefined,
  endedAt: undefined,
  lastDoneAt: undefined,
  hasPinged: false,
  trouble: undefined,
  why: undefined,
  seenAt: 0,
  busyAt: 0,
  polledAt: 0,
  slots: 1,
  exit: undefined,
};

const at = 1_790_000_000_001;
const why = "a test";
/** One change of a worker's row for each event of the table. */
export const workerChanges: { readonly [Event in WorkerEvent]: Extract<WorkerChange, { by: Event }> } = {
  wait: { by: "wait", why },
  place: { by: "place", hostNo: 1, resources: { gpus: [], cpus: 1, memoryMib: 1_024 }, placedAt: at },
  close: { by: "close", closedAt: at, why },
  pause: { by: "pause", pausedAt: at, why },
  resume: { by: "resume", resumedAt: at, pausedMs: 0, why },
  stop: { by: "stop", stopAt: at, killAt: at + 1, why },
  killSooner: { by: "killSooner", killAt: at },
  rehost: { by: "rehost", hostNo: 1 },
  prepare: { by: "prepare", secretHash: "hash", workerUrl: "http://127.0.0.1:8000", address: "127.0.0.1:1" },
  start: {
    by: "start",
    startedAt: at,
    placedAt: at,
    imageAt: at,
    madeAt: at,
    handle: { provider: "process", ref: { pid: 1, startTime: "2" } },
  },
  freeze: { by: "freeze" },
  askToStop: { by: "askToStop", askedAt: at },
  kill: { by: "kill", killAt: at, exit: { note: why } },
  giveUp: { by: "giveUp", closedAt: at },
  end: { by: "end", endedAt: at, exit: { code: 1, signal: "SIGKILL", note: why, cause: "memory" } },
  ready: { by: "ready", readyAt: at },
  ping: { by: "ping", hasPinged: true },
  output: { by: "output", outputAt: at },
  done: { by: "done", lastDoneAt: at, outputAt: at },
  lastWords: { by: "lastWords", exit: { note: why } },
  unhealthy: { by: "unhealthy", trouble: { at, why } },
  healthy: { by: "healthy", trouble: undefined },
};

/** A worker that does nothing in particular. */
export const plainSpec = (workerId: string): WorkerSpec => ({
  workerId,
  from: { directory: "/" },
  entrypoint: [],
  command: [],
  env: {},
  mounts: [],
});

/** A user without resources, and a key for everything of its owner. */
export const plainUser: Omit<User, "no"> = {
  id: "user_plain",
  name: "plain",
  isAdmin: false,
  webhookSecret: "",
  oldWebhookSecret: undefined,
  pubKey: "",
  terms: {},
  createdAt: 0,
  deletedAt: undefined,
};
export const plainKey: Omit<NewKey, "hash" | "ownerNo"> = {
  id: "key00000000000",
  name: "plain",
  prefix: "mr_pla",
  isBootstrap: false,
  scope: { kind: "everything" },
  createdAt: 0,
  expiresAt: undefined,
  old: undefined,
};
