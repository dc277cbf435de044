import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Json, PodScene } from "../../operations/pods/pods-fixture.js";

let pods: PodScene;
beforeEach(async () => {
  pods = await PodScene.open();
});
afterEach(() => pods.close());

async function ask(query: string, variables?: object, key?: string): Promise<Json> {
  const { json } = await pods.http.post("/graphql", { query, variables }, key === undefined ? {} : { key });
  return json;
}
async function data(query: string, variables?: object): Promise<Json> {
  const answer = await ask(query, variables);
  expect(answer.errors).toBeUndefined();
  return answer.data;
}

describe("Pods over GraphQL", () => {
  it("are deployed as the Python client does it, listed, stopped, resumed and terminated", async () => {
    const { podFindAndDeployOnDemand: made } = await data(`mutation { podFindAndDeployOnDemand(input: {
      name: "mine", imageName: "alpine:3", gpuTypeId: "NVIDIA L4", cloudType: ALL, startSsh: true,
      dataCenterId: null, gpuCount: 1, volumeInGb: 5, containerDiskInGb: 6, minVcpuCount: 1, minMemoryInGb: 1,
      dockerArgs: "sleep 60", ports: "8888/http,22/tcp", volumeMountPath: "/data", env: [{key: "A", value: "1=2"}]
    }) { id imageName env machineId machine { podHostId } desiredStatus costPerHr lastStatusChange } }`);
    expect(made).toMatchObject({ imageName: "alpine:3", env: ["A=1=2"], desiredStatus: "RUNNING", costPerHr: 0 });
    await pods.passed();
    expect(pods.launches[0]).toMatchObject({ command: ["sleep", "60"], env: { A: "1=2" }, gpus: ["GPU-1"], diskGb: 6 });
    const { myself } =
      await data(`{ myself { pods { id name containerDiskInGb costPerHr desiredStatus dockerArgs dockerId
      env gpuCount imageName lastStatusChange machineId memoryInGb name podType port ports uptimeSeconds vcpuCount
      volumeInGb volumeMountPath runtime { ports { ip isIpPublic privatePort publicPort type } uptimeInSeconds }
      machine { gpuDisplayName location podHostId gpuType { id memoryInGb } } latestTelemetry { time } } } }`);
    expect(myself.pods).toMatchObject([
      {
        id: made.id,
        ports: "8888/http,22/tcp",
        podType: "RESERVED",
        volumeInGb: 5,
        dockerArgs: "sleep 60",
        runtime: { ports: [] },
        machine: {
          ...{ gpuDisplayName: "L4", location: "CZ", podHostId: expect.stringContaining(made.id) },
          gpuType: { id: "NVIDIA L4", memoryInGb: 24 },
        },
        latestTelemetry: null,
      },
    ]);
    const input = { podId: made.id };
    const { podStop } = await data("mutation ($i: PodStopInput!) { podStop(input: $i) { id desiredStatus } }", {
      i: input,
    });
    expect(podStop).toEqual({ id: made.id, desiredStatus: "EXITED" });
    await pods.stopped(made.id);
    const resume = "mutation ($i: PodResumeInput!) { podResume(input: $i) { desiredStatus gpuCount } }";
    expect(await data(resume, { i: { ...input, gpuCount: 2 } })).toEqual({
      podResume: { desiredStatus: "RUNNING", gpuCount: 2 },
    });
    expect(await data(`mutation { podTerminate(input: {podId: "${made.id}"}) }`)).toEqual({ podTerminate: null });
    expect(await data(`{ pod(input: {podId: "${made.id}"}) { id } }`)).toEqual({ pod: null });
  });

  it("with an instance are CPU pods", async () => {
    const { deployCpuPod: made } = await data(
      'mutation { deployCpuPod(input: {instanceId: "cpu3c-4-8", imageName: "alpine:3"}) { id vcpuCount cpuFlavorId } }',
    );
    expect(made).toMatchObject({ vcpuCount: 4, cpuFlavorId: "cpu3c" });
    await pods.passed();
    expect(pods.launches[0]).toMatchObject({ cpus: 4, memoryMib: 8_192 });
    const wrong = await ask('mutation { deployCpuPod(input: {instanceId: "huge", imageName: "a"}) { id } }');
    expect(wrong.errors[0].message).toMatch(/'huge' in instanceId/);
  });

  it("of others do not exist", async () => {
    const { id } = await pods.create();
    const { key } = await pods.scene.stranger();
    expect((await ask(`{ pod(input: {podId: "${id}"}) { id } myself { pods { id } } }`, undefined, key)).data).toEqual({
      pod: null,
      myself: { pods: [] },
    });
    const stopped = await ask(`mutation { podStop(input: {podId: "${id}"}) { id } }`, undefined, key);
    expect(stopped.errors[0].message).toMatch(/no pod/);
  });

  it("are looked up among the hosts once a list, however many there are", async () => {
    for (let n = 0; n < 5; n++) await pods.create({ name: `p${n}` });
    await pods.passed();
    let looks = 0;
    const { here } = pods.scene.parts;
    const hosts = here.hosts;
    Object.assign(here, {
      hosts: () => {
        looks++;
        return hosts();
      },
    });
    await data("{ myself { pods { id statusDetail } } }");
    expect(looks).toBeLessThanOrEqual(1);
  });
});
