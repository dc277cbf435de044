import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { HostFacts } from "../../domain/hosts/host.js";
import { plainHost } from "../../testing/facts-fixture.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
let facts: HostFacts = plainHost;
beforeAll(async () => {
  scene = await Scene.open({ here: { facts: () => facts } });
  http = await openHttp(scene, { rates: undefined });
});
afterAll(async () => {
  await http.close();
  await scene.close();
});

const ask = async (query: string, variables: object = {}, path = "/graphql") => {
  const { status, json, text } = await http.post(path, { query, variables });
  expect(status, text).toBe(200);
  return json;
};
const data = async (query: string, variables: object = {}) => {
  const { data, errors } = await ask(query, variables);
  expect(errors).toBeUndefined();
  return data;
};

describe("A saved endpoint", () => {
  const save =
    "mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id templateId template { id name } } }";
  const all = `query ($id: String!) { myself { endpoint(id: $id) {
    name gpuIds gpuCount instanceIds computeType locations networkVolumeIds { networkVolumeId dataCenterId }
    minCudaVersion allowedCudaVersions modelReferences workersPFBTarget flashEnvironmentId activeBuildid idePodId
    template { imageName dockerArgs env { key value } startSsh startScript advancedStart isRunpod portsConfig { port name } }
  } } }`;
  const shown = async (id: string) => (await data(all, { id })).myself.endpoint;

  it("may bring its template, which goes with it", async () => {
    const template = {
      imageName: "alpine:3",
      dockerArgs: "run me",
      env: [{ key: "A", value: "1" }],
      startScript: "",
      advancedStart: false,
      config: {},
    };
    const input = { name: "inline", gpuIds: "ADA_24", type: "QB", template, networkVolumeIds: null, locations: null };
    const { id, templateId } = (await data(save, { input })).saveEndpoint;
    expect(await shown(id)).toMatchObject({
      gpuIds: "ADA_24",
      computeType: "GPU",
      minCudaVersion: null,
      modelReferences: [],
      template: { imageName: "alpine:3", dockerArgs: "run me", env: [{ key: "A", value: "1" }], isRunpod: false },
    });
    const changed = { id, template: { imageName: "alpine:3.20" }, workersMin: 0, workersMax: 0 };
    expect((await data(save, { input: changed })).saveEndpoint.templateId).toBe(templateId);
    expect(scene.parts.registry.endpoint(id)?.version).toBe(2);
    expect((await shown(id)).template.imageName).toBe("alpine:3.20");
    expect(await data(`mutation { deleteEndpoint(id: "${id}") }`)).toEqual({ deleteEndpoint: null });
    expect(await data("query ($id: String!) { podTemplate(id: $id) { id } }", { id: templateId })).toEqual({
      podTemplate: null,
    });
    expect((await data(all, { id })).myself.endpoint).toBeNull();
  });

  it("may name CPU instances instead of GPUs, and network volumes in objects", async () => {
    const volume = (await http.post("/v1/networkvolumes", { name: "v", size: 1, dataCenterId: "EU-RO-1" })).json;
    const template = await scene.template({ imageName: "alpine:3" });
    const input = {
      name: "cpu",
      templateId: template.id,
      instanceIds: ["cpu3g-2-8"],
      networkVolumeIds: [{ networkVolumeId: volume.id }],
    };
    const { id } = (await data(save, { input })).saveEndpoint;
    expect(await shown(id)).toMatchObject({
      computeType: "CPU",
      instanceIds: ["cpu3g-2-8"],
      networkVolumeIds: [{ networkVolumeId: volume.id, dataCenterId: "EU-RO-1" }],
    });
    const without = await ask(save, { input: { name: "neither", templateId: template.id } });
    expect(without.errors[0].message).toMatch(/gpuIds/);
  });

  it("may name GPU types beside tiers, exclusions, and data centres beside countries", async () => {
    const template = await scene.template({ imageName: "alpine:3" });
    const input = {
      name: "types",
      templateId: template.id,
      gpuIds: "AMPERE_24,-NVIDIA L4,NVIDIA L40S",
      locations: "EU-RO-1,US",
    };
    const { id } = (await data(save, { input })).saveEndpoint;
    expect(scene.parts.registry.endpoint(id)?.settings.gpuTypeIds).toEqual([
      "NVIDIA RTX A5000",
      "NVIDIA GeForce RTX 3090",
      "NVIDIA L40S",
    ]);
    expect(await shown(id)).toMatchObject({ gpuIds: "AMPERE_24,ADA_48_PRO", locations: "EU-RO-1,US" });
    for (const [field, value] of [
      ["gpuIds", "ADA_25"],
      ["gpuIds", "AMPERE_24,-AMPERE_24"],
      ["locations", "Mars"],
    ])
      expect((await ask(save, { input: { ...input, [field as string]: value } })).errors[0].message).toContain(field);
  });

  it("refuses what would be ignored at run time, and both kinds of templates at once", async () => {
    const template = await scene.template({ imageName: "alpine:3" });
    const input = { name: "n", gpuIds: "ADA_24" };
    const script = await ask(save, { input: { ...input, template: { imageName: "alpine:3", startScript: "sh" } } });
    expect(script.errors[0].message).toMatch(/startScript/);
    const both = await ask(save, { input: { ...input, templateId: template.id, template: { imageName: "alpine:3" } } });
    expect(both.errors[0].message).toMatch(/not both/);
    const half = await ask(save, { input: { ...input, templateId: template.id, scalerValue: 4.5 } });
    expect(half.errors[0].message).toMatch(/scalerValue/);
  });
});

describe("The catalog", () => {
  const gpu = { id: "GPU-1", index: 0, name: "NVIDIA L4", memoryMib: 23_034, driver: "550" };

  it("says how many GPUs are free, in which data centre", async () => {
    facts = { ...plainHost, gpus: [gpu], gpusEnforced: true, location: "EU-RO-1" };
    const query = `query ($lowest: GpuLowestPriceInput, $types: GpuTypeFilter) { gpuTypes(input: $types) {
      id lowestPrice(input: $lowest) { stockStatus availableGpuCounts gpuTypeCudaVersions { cudaVersion availability } } } }`;
    const types = { ids: ["NVIDIA L4", "NVIDIA A40"] };
    const lowest = {
      gpuCount: 1,
      dataCenterId: null,
      secureCloud: true,
      includeAiApi: true,
      allowedCudaVersions: [],
      compliance: [],
    };
    expect((await data(query, { types, lowest })).gpuTypes).toEqual([
      { id: "NVIDIA L4", lowestPrice: { stockStatus: "Low", availableGpuCounts: [1], gpuTypeCudaVersions: [] } },
      { id: "NVIDIA A40", lowestPrice: { stockStatus: null, availableGpuCounts: [], gpuTypeCudaVersions: [] } },
    ]);
    const elsewhere = await data(query, { types, lowest: { ...lowest, dataCenterId: "US-TX-1" } });
    expect(elsewhere.gpuTypes[0].lowestPrice.stockStatus).toBeNull();
    for (const [cuda, stock] of [
      [{ allowedCudaVersions: ["12.8", "12.4"] }, "Low"],
      [{ minCudaVersion: "12.8" }, null],
      [{ minCudaVersion: "" }, "Low"],
      [{ minVcpuCount: 8, minMemoryInGb: 16 }, "Low"],
      [{ minVcpuCount: 9 }, null],
      [{ minMemoryInGb: 17 }, null],
    ] as const)
      expect((await data(query, { types, lowest: { ...lowest, ...cuda } })).gpuTypes[0].lowestPrice.stockStatus).toBe(
        stock,
      );
    const places = await data("{ dataCenters { id location gpuAvailability { gpuTypeId stockStatus available } } }");
    expect(places.dataCenters[0]).toEqual({
      id: "EU-RO-1",
      location: "RO",
      gpuAvailability: [{ gpuTypeId: "NVIDIA L4", stockStatus: "Low", available: true }],
    });
  });

  it("lists tiers with their types, and CPU flavours with what is free of them", async () => {
    const { serverlessGpuPools } = await data("{ serverlessGpuPools { id gpuTypeIds } }");
    expect(serverlessGpuPools).toContainEqual({ id: "ADA_24", gpuTypeIds: ["NVIDIA GeForce RTX 4090"] });
    facts = { ...plainHost, cpus: 8 };
    const query = `query ($flavor: CpuFlavorInput, $specifics: SpecificsInput) {
      cpuFlavors(input: $flavor) { id specifics(input: $specifics) { stockStatus } } }`;
    const specifics = { dataCenterId: "EU-RO-1", instanceId: "cpu3c-4-8", isSls: true };
    expect((await data(query, { flavor: { id: "cpu3c" }, specifics })).cpuFlavors).toEqual([
      { id: "cpu3c", specifics: { stockStatus: "Medium" } },
    ]);
  });

  it("is for callers with a key, unless it is public: then it alone is open", async () => {
    const open = await openHttp(scene, { rates: undefined, ...{ publicCatalog: true } });
    const without = (query: string) => open.post("/graphql", { query }, { key: null });
    const catalog = "{ gpuTypes { id } dataCenters { id } listings(input: {}) { id } allAiApiPublicConfigs { id } }";
    const { status, json } = await without(catalog);
    expect([status, json.errors, json.data.listings]).toEqual([200, undefined, []]);
    for (const query of [
      "{ myself { id } }",
      "{ gpuTypes { id } myself { id } }",
      "{ podTemplates { id } }",
      "query { ...F } fragment F on Query { myself { id } }",
      'mutation { deleteEndpoint(id: "x") }',
    ])
      expect((await without(query)).status, query).toBe(401);
    expect((await http.post("/graphql", { query: catalog }, { key: null })).status).toBe(401);
    await open.close();
  });
});

describe("A user's settings", () => {
  it("are its SSH keys, one a line", async () => {
    const save = "mutation ($input: UpdateUserSettingsInput) { updateUserSettings(input: $input) { id pubKey } }";
    const pubKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 me@here\n\necdsa-sha2-nistp256 AAAAE2VjZHNh";
    const kept = pubKey.replace("\n\n", "\n");
    expect((await data(save, { input: { pubKey } })).updateUserSettings.pubKey).toBe(kept);
    expect((await data("{ myself { pubKey } }")).myself.pubKey).toBe(kept);
    const wrong = await ask(save, { input: { pubKey: "not a key" } });
    expect(wrong.errors[0].message).toMatch(/not an SSH public key/);
    expect((await data("{ myself { pubKey } }")).myself.pubKey).toBe(kept);
  });

  it("hold a secret that is deleted by a variable of type ID", async () => {
    const create = "mutation ($input: SecretCreateInput!) { secretCreate(input: $input) { id name } }";
    const { id } = (await data(create, { input: { name: "token", value: "hidden" } })).secretCreate;
    expect(await data("mutation ($id: ID!) { secretDelete(id: $id) }", { id })).toEqual({ secretDelete: true });
  });
});

describe("A mutation whose input may be null, as clients declare it", () => {
  it.each([
    ["saveTemplate(input: null) { id }", "'input' is required."],
    ["updateEndpointTemplate { id }", "'input' is required."],
    ["deleteTemplate", "'templateName' is required: the name of the template to delete."],
    ["podFindAndDeployOnDemand { id }", "A pod needs 'imageName', or a 'templateId' that has one."],
    ["deployCpuPod(input: null) { id }", "A pod needs 'imageName', or a 'templateId' that has one."],
  ])("is refused without one: %s", async (mutation, message) => {
    expect((await ask(`mutation { ${mutation} }`)).errors).toMatchObject([
      { message, extensions: { code: "INVALID_INPUT" } },
    ]);
  });
});

describe("What exists only at the hosted service", () => {
  it("is an empty list", async () => {
    expect(
      await data(
        "{ listings(input: {}) { id } myModels { id } models { id } myself { flashApps { id } pods { id } } }",
      ),
    ).toEqual({ listings: [], myModels: [], models: [], myself: { flashApps: [], pods: [] } });
    const nothing = '{ listing(id: "x") { id } myModel(owner: "o", name: "n") { id } }';
    expect(await data(nothing)).toEqual({ listing: null, myModel: null });
  });

  it.each([
    [
      "mutation ($input: AddModelToRepoInput!) { addModelToRepo(input: $input) { success } }",
      { name: "m", metadata: {} },
    ],
    ["mutation ($input: CreateFlashAppInput!) { createFlashApp(input: $input) { id } }", { name: "a" }],
    [
      "mutation ($input: PrepareFlashArtifactUploadInput!) { prepareFlashArtifactUpload(input: $input) { uploadUrl } }",
      { flashAppId: "a", tarballSize: 4_000_000_000 },
    ],
  ])("cannot be made: %s", async (query, input) => {
    const { errors } = await ask(query, { input });
    expect(errors[0]).toMatchObject({
      message: expect.stringMatching(/only at the hosted service/),
      extensions: { code: "NOT_OFFERED_HERE" },
    });
  });

  it("is reported as missing in the words that clients look for", async () => {
    const { errors } = await ask("query ($name: String!) { flashAppByName(flashAppName: $name) { id } }", {
      name: "a",
    });
    expect(errors[0].message).toMatch(/app not found/i);
  });
});
