import { afterAll, beforeAll, expect, it } from "vitest";
import { startServer, type TestServer } from "../harness.js";
import { expectOutcomes, type Finding } from "./outcomes.js";
import { billType, decoded, endpointType, type GoType, podType, runpodctl, templateType } from "./runpodctl.js";
import { runpodctlCalls } from "./runpodctl-calls.js";
import type { Said } from "./stock.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.end());

const saveEndpoint = `mutation ($input: EndpointInput!) { saveEndpoint(input: $input) {
  id name templateId gpuIds gpuCount instanceIds computeType locations idleTimeout scalerType scalerValue workersMin workersMax
  networkVolumeId minCudaVersion executionTimeoutMs flashBootType modelReferences } }`;
const deployPod = `mutation ($input: PodFindAndDeployOnDemandInput!) { podFindAndDeployOnDemand(input: $input) {
  id name imageName desiredStatus costPerHr gpuCount env ports containerDiskInGb volumeInGb volumeMountPath machineId
  machine { gpuDisplayName location podHostId } } }`;
const listed = `query ($input: PodTemplateInput) { podTemplates(input: $input) {
  id name imageName isPublic isServerless isRunpod category readme ports containerDiskInGb volumeInGb env { key value } } }`;

const image = {
  name: "made",
  imageName: "alpine:3",
  isServerless: true,
  env: { A: "1" },
  containerDiskInGb: 5,
  readme: "read",
};

/** The fields of an endpoint that the program sends back with a new model. */
const echoed = [
  ...["id", "name", "templateId", "gpuIds", "gpuCount", "locations", "idleTimeout", "scalerType", "scalerValue"],
  ...["workersMin", "workersMax", "executionTimeoutMs", "flashBootType", "minCudaVersion", "instanceIds"],
  "networkVolumeId",
];

type Ctl = ReturnType<typeof runpodctl>;
/** Does a command, notes how it ended, and returns what its types got of the reply. */
type Command = (name: string, act: () => Promise<Said>, type?: GoType) => Promise<Said>;

it("Each command of runpodctl gets what its types can hold", async () => {
  const ctl = runpodctl(server);
  const found: Record<string, Finding> = {};
  const command: Command = async (name, act, type = "any") => {
    try {
      found[name] = { gave: decoded(await act(), type) };
    } catch (error) {
      found[name] = { error: error instanceof Error ? error.message : String(error) };
    }
    return found[name].gave;
  };
  await account(ctl, command);
  const templateId = await templates(ctl, command);
  await networkVolumes(ctl, command);
  await credentials(ctl, command);
  await endpoints(ctl, command, templateId);
  await hub(ctl, command);
  await pods(ctl, command);
  await bills(ctl, command);
  expectOutcomes(runpodctlCalls, found);
});

async function account(ctl: Ctl, command: Command): Promise<void> {
  const me = "query { myself { id pubKey email clientBalance currentSpendPerHr spendLimit } }";
  await command("doctor", () => ctl.graphql(me), { myself: { id: "string" } });
  await command("user", () => ctl.graphql(me), {
    myself: { email: "string", clientBalance: "number", spendLimit: "int" },
  });
  const addKey = "mutation ($input: UpdateUserSettingsInput) { updateUserSettings(input: $input) { id pubKey } }";
  await command("ssh add-key", () =>
    ctl.graphql(addKey, { input: { pubKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA one" } }),
  );
  await command("ssh list-keys", () => ctl.graphql(me), { myself: { pubKey: "string" } });
  const gpus = `query { gpuTypes { id displayName memoryInGb secureCloud communityCloud lowestPrice(input: { gpuCount: 1 }) { stockStatus } }
    dataCenters { id name location gpuAvailability { gpuTypeId displayName stockStatus } } }`;
  await command("gpu list", () => ctl.graphql(gpus), {
    gpuTypes: [{ id: "string", displayName: "string", memoryInGb: "int" }],
  });
  await command("datacenter list", () => ctl.graphql(gpus), {
    dataCenters: [{ id: "string", name: "string", location: "string" }],
  });
}

/** Returns the id of the template that it leaves. */
async function templates(ctl: Ctl, command: Command): Promise<string> {
  const template = await command(
    "template create",
    () => ctl.rest("POST", "/templates", { ...image, ports: ["80/http"] }),
    templateType,
  );
  await command("template list --type user", () => ctl.rest("GET", "/templates"), [templateType]);
  await command(
    "template list",
    async () => [
      ...(await ctl.graphql(listed, { input: { isRunpod: true } })).podTemplates,
      ...(await ctl.graphql(listed, { input: { isRunpod: false } })).podTemplates,
    ],
    [{ id: "string", name: "string", ports: "string", env: [{ key: "string", value: "string" }] }],
  );
  const got = await command("template get", () => ctl.rest("GET", `/templates/${template.id}`), templateType);
  await command(
    "template update",
    () => ctl.rest("PATCH", `/templates/${template.id}`, { name: "changed" }),
    templateType,
  );
  expect(got).toMatchObject({ name: "made", env: { A: "1" }, readme: "read" });
  return template.id;
}

async function networkVolumes(ctl: Ctl, command: Command): Promise<void> {
  const volumeType: GoType = { id: "string", name: "string", size: "int", dataCenterId: "string" };
  const volumes = "/networkvolumes";
  const volume = await command(
    "network-volume create",
    () => ctl.rest("POST", volumes, { name: "v", size: 10, dataCenterId: "EU-RO-1" }),
    volumeType,
  );
  await command("network-volume list", () => ctl.rest("GET", volumes), [volumeType]);
  await command("network-volume get", () => ctl.rest("GET", `${volumes}/${volume.id}`), volumeType);
  await command("network-volume update", () => ctl.rest("PATCH", `${volumes}/${volume.id}`, { size: 20 }), volumeType);
  await command("network-volume delete", () => ctl.rest("DELETE", `${volumes}/${volume.id}`));
}

async function credentials(ctl: Ctl, command: Command): Promise<void> {
  const registryType: GoType = { id: "string", name: "string", username: "string" };
  const registries = "/containerregistryauth";
  const registry = await command(
    "registry create",
    () => ctl.rest("POST", registries, { name: "r", username: "u", password: "p" }),
    registryType,
  );
  await command("registry list", () => ctl.rest("GET", registries), [registryType]);
  await command("registry get", () => ctl.rest("GET", `${registries}/${registry.id}`), registryType);
  await command("registry delete", () => ctl.rest("DELETE", `${registries}/${registry.id}`));
}

async function endpoints(ctl: Ctl, command: Command, templateId: string): Promise<void> {
  const create = async (more: object) => (await ctl.graphql(saveEndpoint, { input: more })).saveEndpoint;
  const usual = { templateId, workersMax: 3, idleTimeout: 7, scalerType: "QUEUE_DELAY", scalerValue: 4 };
  const onGpu = {
    ...usual,
    gpuIds: "ADA_24,-NVIDIA L4",
    gpuCount: 1,
    flashBootType: "FLASHBOOT",
    executionTimeoutMs: 60_000,
  };
  const pools = await ctl.graphql("query { serverlessGpuPools { id gpuTypeIds } }");
  expect(pools.serverlessGpuPools.map(({ id }: Said) => id)).toContain("ADA_24");
  const endpoint = await command("serverless create", () => create({ ...onGpu, name: "on GPUs" }), endpointType);
  await command(
    "serverless create, a GPU type by its name",
    () => create({ ...usual, name: "by name", gpuIds: "NVIDIA H200" }),
    endpointType,
  );
  await command(
    "serverless create, processors only",
    () => create({ ...usual, name: "no GPU", instanceIds: ["cpu3g-4-16"] }),
    endpointType,
  );

  const whole = "?includeTemplate=true&includeWorkers=true";
  const at = `/endpoints/${endpoint.id}`;
  await command("serverless list", () => ctl.rest("GET", `/endpoints${whole}`), [endpointType]);
  await command("serverless get", () => ctl.rest("GET", `${at}${whole}`), endpointType);
  await command("serverless update", () => ctl.rest("PATCH", at, { name: "renamed", workersMax: 2 }), endpointType);
  await command("serverless update, without a change", () => ctl.rest("PATCH", at, {}), endpointType);
  const other = await ctl.rest("POST", "/templates", { ...image, name: "other" });
  const changeTemplate =
    "mutation ($input: UpdateEndpointTemplateInput) { updateEndpointTemplate(input: $input) { id templateId } }";
  await command("serverless update --template-id", () =>
    ctl.graphql(changeTemplate, { input: { endpointId: endpoint.id, templateId: other.id } }),
  );
  await command(
    "serverless update --model-reference",
    async () => {
      const now = await ctl.rest("GET", at);
      const zero = {
        gpuIds: "",
        flashBootType: "",
        minCudaVersion: "",
        locations: "",
        networkVolumeId: "",
        instanceIds: null,
      };
      const shown = Object.fromEntries(echoed.map((field) => [field, now[field]]).filter(([, value]) => value != null));
      return create({ ...zero, ...shown, modelReferences: ["https://models.example/one"] });
    },
    endpointType,
  );
  const after = await ctl.rest("GET", at);
  expect(after).toMatchObject({ name: "renamed", templateId: other.id, workersMax: 2, idleTimeout: 7, gpuCount: 1 });
  await command("serverless delete", () => ctl.rest("DELETE", at));
  await command("template delete", () => ctl.rest("DELETE", `/templates/${other.id}`));
}

async function hub(ctl: Ctl, command: Command): Promise<void> {
  await command("hub list", () => ctl.graphql("query { listings(input: {}) { id title } }"));
  const listing = async () => {
    const { listing } = await ctl.graphql("query ($id: String!) { listing(id: $id) { id title } }", { id: "any" });
    expect(listing).toBeNull();
    throw new Error("the program finds no listing: they exist only at the hosted service");
  };
  await command("hub get", listing);
  await command("serverless create --hub-id", listing); // the program looks for it first
  await command("model list", () => ctl.graphql("query { myModels { id } }"));
  const addModel = "mutation ($input: AddModelToRepoInput!) { addModelToRepo(input: $input) { __typename } }";
  await command("model add", () => ctl.graphql(addModel, { input: { name: "any" } }));
}

async function pods(ctl: Ctl, command: Command): Promise<void> {
  const podImage = { name: "pod", imageName: "alpine:3", containerDiskInGb: 5 };
  const onGpuPod = {
    ...podImage,
    cloudType: "SECURE",
    gpuTypeId: "NVIDIA L4",
    gpuCount: 1,
    volumeInGb: 1,
    volumeMountPath: "/workspace",
    ports: "8888/http",
    env: [{ key: "A", value: "1" }],
  };
  const graphqlPod: GoType = {
    id: "string",
    env: ["string"],
    ports: "string",
    costPerHr: "number",
    gpuCount: "int",
    machineId: "string",
  };
  const pod = await command(
    "pod create",
    async () => (await ctl.graphql(deployPod, { input: onGpuPod })).podFindAndDeployOnDemand,
    graphqlPod,
  );
  const small = await command(
    "pod create, processors only",
    () =>
      ctl.rest("POST", "/pods", {
        ...podImage,
        computeType: "CPU",
        vcpuCount: 2,
        cpuFlavorIds: ["cpu3c"],
        env: { B: "2" },
      }),
    podType,
  );
  await command("pod list", () => ctl.rest("GET", "/pods"), [podType]);
  await command(
    "pod list, filtered",
    () => ctl.rest("GET", "/pods?computeType=CPU&name=pod&gpuTypeId=NVIDIA%20L4&dataCenterId=EU-RO-1"),
    [podType],
  );
  await command(
    "pod get",
    () => ctl.rest("GET", `/pods/${pod.id}?includeMachine=true&includeNetworkVolume=true`),
    podType,
  );
  await command("pod update", () => ctl.rest("PATCH", `/pods/${pod.id}`, { name: "renamed" }), podType);
  const turn = (to: string) => command(`pod ${to}`, () => ctl.rest("POST", `/pods/${pod.id}/${to}`), podType);
  expect(await turn("stop")).toMatchObject({ desiredStatus: "EXITED" });
  expect(await turn("start")).toMatchObject({ desiredStatus: "RUNNING" });
  await turn("restart");
  await turn("reset");
  await command("pod delete", () => ctl.rest("DELETE", `/pods/${pod.id}`));
  expect(small).toMatchObject({ vcpuCount: 2, env: { B: "2" } });
}

async function bills(ctl: Ctl, command: Command): Promise<void> {
  const since = "bucketSize=day&startTime=2026-01-01T00:00:00Z&endTime=2026-02-01T00:00:00Z";
  await command(
    "billing serverless",
    () => ctl.rest("GET", `/billing/endpoints?${since}&grouping=endpointId`),
    billType,
  );
  await command("billing pods", () => ctl.rest("GET", `/billing/pods?${since}&grouping=gpuTypeId`), billType);
  await command("billing network-volume", () => ctl.rest("GET", `/billing/networkvolumes?${since}`), billType);
}
