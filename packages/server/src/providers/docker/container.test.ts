import { describe, expect, it } from "vitest";
import type { ImageSpec } from "../../provider.js";
import { containerOptions } from "./container.js";

const machine = { architecture: "amd64", memoryBytes: 2 ** 34, cpus: 4, boundsDisks: true };
const launch: ImageSpec = {
  workerId: "worker00000001",
  from: { image: "image:1" },
  entrypoint: [],
  command: [],
  env: {},
  mounts: [],
};
const hostConfig = (more: Partial<ImageSpec>, on = machine, keepsVolumes = false) =>
  containerOptions({ ...launch, ...more }, {}, on, { keepsVolumes }).HostConfig;

describe("The request for a container", () => {
  it("names the GPUs by their ids, whichever runtime provides them", () => {
    expect(hostConfig({ gpus: ["GPU-1", "GPU-2"] })?.DeviceRequests).toEqual([
      { Driver: "", DeviceIDs: ["GPU-1", "GPU-2"], Capabilities: [["gpu"]] },
    ]);
    for (const gpus of [[], undefined]) expect(hostConfig({ gpus })).not.toHaveProperty("DeviceRequests");
  });

  it("limits the container's disk if the engine can", () => {
    expect(hostConfig({ diskGb: 20 })?.StorageOpt).toEqual({ size: "20G" });
    expect(hostConfig({ diskGb: 20 }, { ...machine, boundsDisks: false })).not.toHaveProperty("StorageOpt");
    for (const diskGb of [0, undefined]) expect(hostConfig({ diskGb })).not.toHaveProperty("StorageOpt");
  });

  it("mounts a volume's directory, or the engine's own volume that stands for it", () => {
    const mounts = [{ volumeId: "a", path: "/data/a", target: "/models" }];
    expect(hostConfig({ mounts })?.Mounts).toEqual([{ Type: "bind", Source: "/data/a", Target: "/models" }]);
    expect(hostConfig({ mounts }, machine, true)?.Mounts).toEqual([
      {
        Type: "volume",
        Source: "millrace-a",
        Target: "/models",
        VolumeOptions: {
          NoCopy: true,
          Labels: { "millrace.volume": "millrace-a" },
          DriverConfig: { Name: "local", Options: {} },
        },
      },
    ]);
  });
});
