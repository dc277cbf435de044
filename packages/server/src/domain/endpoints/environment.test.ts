import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inheritedNames, type WorkerFacts, workerEnvironment } from "./environment.js";

const facts: WorkerFacts = {
  workerId: "worker00000001",
  endpointId: "endpoint000001",
  secret: "secret-of-it",
  workerUrl: "http://127.0.0.1:8000",
  hostname: "host",
  location: "CZ",
  cpuCount: 4,
  memoryGb: 16,
  gpus: [],
  hostHasGpus: false,
  volume: undefined,
  home: "/data/homes/endpoint000001",
  inherited: { PATH: "/usr/bin" },
  own: {},
};
const calls = "http://127.0.0.1:8000/v2/endpoint000001";

/** The protocol's variables, whatever the worker's owner sets. */
const protocol = {
  RUNPOD_POD_ID: "worker00000001",
  RUNPOD_ENDPOINT_ID: "endpoint000001",
  RUNPOD_AI_API_KEY: "secret-of-it",
  RUNPOD_WEBHOOK_GET_JOB: `${calls}/job-take/$ID?gpu=cpu&token=secret-of-it`,
  RUNPOD_WEBHOOK_POST_OUTPUT: `${calls}/job-done/$RUNPOD_POD_ID/$ID?gpu=cpu&token=secret-of-it`,
  RUNPOD_WEBHOOK_POST_STREAM: `${calls}/job-stream/$RUNPOD_POD_ID/$ID?gpu=cpu&token=secret-of-it`,
  RUNPOD_WEBHOOK_PING: `${calls}/ping/$RUNPOD_POD_ID`,
  RUNPOD_PING_INTERVAL: "4000",
  RUNPOD_POD_HOSTNAME: "host",
  RUNPOD_GPU_COUNT: "0",
  RUNPOD_DC_ID: "CZ",
  RUNPOD_CPU_COUNT: "4",
  RUNPOD_MEM_GB: "16",
};

const gpu = (id: string) => ({ id, name: "NVIDIA L4" });

describe("A worker's environment", () => {
  it("has the protocol's variables", () => {
    expect(workerEnvironment(facts)).toEqual({
      ...protocol,
      PATH: "/usr/bin",
      HOME: "/data/homes/endpoint000001",
      RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: "true",
      RUNPOD_DEBUG_LEVEL: "INFO",
      RUNPOD_SKIP_GPU_CHECK: "true",
      PYTHONUNBUFFERED: "1",
    });
  });

  it("lets no variable of its owner override the protocol's", () => {
    const names = Object.keys(protocol);
    fc.assert(
      fc.property(fc.dictionary(fc.oneof(fc.constantFrom(...names), fc.string()), fc.string()), (own) => {
        expect(workerEnvironment({ ...facts, own })).toMatchObject(protocol);
      }),
    );
  });

  it("lets its owner set the defaults, its home and other names", () => {
    const own = { HOME: "/elsewhere", RUNPOD_DEBUG_LEVEL: "DEBUG", PATH: "/opt/bin", MODEL: "small" };
    expect(workerEnvironment({ ...facts, own })).toMatchObject(own);
  });

  it("names its GPUs, and leaves their check enabled", () => {
    const env = workerEnvironment({ ...facts, gpus: [gpu("GPU-1"), gpu("GPU-2")] });
    expect(env).toMatchObject({ RUNPOD_GPU_COUNT: "2" });
    expect(env).not.toHaveProperty("RUNPOD_SKIP_GPU_CHECK");
    expect(env.RUNPOD_WEBHOOK_GET_JOB).toContain("/job-take/$ID?gpu=NVIDIA%20L4&token=");
  });

  it("shows only the worker's own GPUs, or none", () => {
    const visible = (more: Partial<WorkerFacts>) =>
      workerEnvironment({ ...facts, hostHasGpus: true, ...more }).CUDA_VISIBLE_DEVICES;
    expect(visible({ gpus: [gpu("GPU-1"), gpu("GPU-2")] })).toBe("GPU-1,GPU-2");
    expect(visible({})).toBe("");
    expect(visible({ hostHasGpus: false })).toBeUndefined();
    expect(visible({ home: undefined })).toBeUndefined(); // its engine limits them
    expect(visible({ own: { CUDA_VISIBLE_DEVICES: "0,1" } })).toBe("");
  });

  it("in a container names them in NVIDIA's variable too, whatever its owner sets", () => {
    const visible = (more: Partial<WorkerFacts>) =>
      workerEnvironment({ ...facts, home: undefined, hostHasGpus: true, ...more }).NVIDIA_VISIBLE_DEVICES;
    expect(visible({ gpus: [gpu("GPU-1"), gpu("GPU-2")] })).toBe("GPU-1,GPU-2");
    expect(visible({ own: { NVIDIA_VISIBLE_DEVICES: "all" } })).toBe("void");
    expect(visible({ hostHasGpus: false })).toBeUndefined();
  });

  it("names its volume's path, whatever its owner sets", () => {
    const volume = { id: "volume00000001", path: "/data/volumes/volume00000001" };
    const own = { RUNPOD_VOLUME_PATH: "/etc", RUNPOD_VOLUME_ID: "other" };
    expect(workerEnvironment({ ...facts, volume, own })).toMatchObject({
      RUNPOD_VOLUME_ID: volume.id,
      RUNPOD_VOLUME_PATH: volume.path,
    });
  });

  it("inherits no name that could carry a secret of the server", () => {
    expect(inheritedNames.filter((name) => /MILLRACE|KEY|TOKEN|SECRET|AWS|DATABASE|NODE_/.test(name))).toEqual([]);
  });
});
