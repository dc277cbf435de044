import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { refused } from "../../edges/rest-v1/answers-fixture.js";
import { image, type Json, PodScene } from "./pods-fixture.js";

let pods: PodScene;
beforeEach(async () => {
  pods = await PodScene.open(); // a machine with one L4, 8 vCPU and 16 GB, whose driver supports CUDA 12.8
});
afterEach(() => pods.close());

async function deploy(asked: string): Promise<Json> {
  const query = `mutation { podFindAndDeployOnDemand(input: {imageName: "alpine:3", gpuCount: 1, ${asked}}) { id } }`;
  const { json } = await pods.http.post("/graphql", { query });
  expect(json.errors).toBeUndefined();
  await pods.passed();
  return pods.show(json.data.podFindAndDeployOnDemand.id);
}

describe("The machine of a GPU pod", () => {
  it.each([
    ["minVcpuCount: 8, minMemoryInGb: 16", undefined],
    ["minVcpuCount: 9", "It needs a machine with 9 vCPU; here are 8 vCPU and 16 GB."],
    ["minMemoryInGb: 17", "It needs a machine with 17 GB of memory; here are 8 vCPU and 16 GB."],
    ['minCudaVersion: "12.4"', undefined],
    [
      'minCudaVersion: "13.0"',
      "It needs GPU whose driver supports CUDA 13.0; here are 1 × NVIDIA L4 with CUDA up to 12.8.",
    ],
    [
      'cudaVersion: "12.9"',
      "It needs GPU whose driver supports CUDA 12.9; here are 1 × NVIDIA L4 with CUDA up to 12.8.",
    ],
  ])("has what is asked for over GraphQL, or the pod waits and says so: %s", async (asked, detail) => {
    const { status, statusDetail } = await deploy(asked);
    expect([status, statusDetail]).toEqual([detail === undefined ? "RUNNING" : "PROVISIONING", detail]);
    expect(pods.launches).toHaveLength(detail === undefined ? 1 : 0);
  });

  it("has what REST asks for each GPU, as many as the pod has when it is started", async () => {
    const { id } = await pods.create({ minVCPUPerGPU: 4, minRAMPerGPU: 8 });
    await pods.passed();
    expect(pods.launches).toHaveLength(1);
    await pods.act(id, "stop");
    await pods.stopped(id);
    const query = `mutation { podResume(input: {podId: "${id}", gpuCount: 3}) { id } }`;
    expect((await pods.http.post("/graphql", { query })).json.errors).toBeUndefined();
    await pods.passed();
    expect((await pods.show(id)).statusDetail).toBe(
      "It needs a machine with 12 vCPU and 24 GB of memory; here are 8 vCPU and 16 GB.",
    );
  });

  it("is not asked about what hosts do not tell: the reply names the fields", async () => {
    const body = { ...image, minDownloadMbps: 100, minUploadMbps: 0, minDiskBandwidthMBps: null, minRAMPerGPU: 1 };
    const { status, headers } = await pods.http.post("/v1/pods", body);
    expect(status).toBe(201);
    expect(headers.get("x-millrace-ignored")).toBe("minDownloadMbps, minUploadMbps, minDiskBandwidthMBps");
    await refused(pods.http.post("/v1/pods", { ...image, minRAMPerGPU: 1_000_001 }), 400, /minRAMPerGPU/);
  });

  it("is not asked about for a CPU pod, which has what its flavour says", async () => {
    await pods.create({ computeType: "CPU", cpuFlavorIds: ["cpu3c"], vcpuCount: 2, minRAMPerGPU: 512 });
    await pods.passed();
    expect(pods.launches).toMatchObject([{ cpus: 2, memoryMib: 4_096 }]);
  });
});
