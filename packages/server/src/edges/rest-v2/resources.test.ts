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

const resources = [
  {
    path: "templates",
    field: "templates",
    body: { name: "t", image: "alpine:3", mounts: { persistent: { size: 10, path: "/data" } }, env: { A: "1" } },
    change: { image: "alpine:3.20", env: {} },
  },
  {
    path: "network-volumes",
    field: "networkVolumes",
    body: { name: "v", size: 10, dataCenter: "EU-RO-1" },
    change: { name: "renamed", size: 20 },
  },
] as const;

describe.each(["/v2", "/sdk/v2"])("Under %s", (prefix) => {
  it.each(resources)("$path are made, listed, changed and deleted", async ({ path, field, body, change }) => {
    const made = await http.post(`${prefix}/${path}`, body);
    expect([made.status, made.json]).toEqual([201, expect.objectContaining(body)]);
    const { id } = made.json;
    expect((await http.get(`${prefix}/${path}`)).json[field]).toContainEqual(made.json);
    expect((await http.get(`${prefix}/${path}/${id}`)).json).toEqual(made.json);
    const changed = await http.call("PATCH", `${prefix}/${path}/${id}`, { body: change });
    expect([changed.status, changed.json]).toEqual([200, { ...made.json, ...change }]);
    expect((await http.call("DELETE", `${prefix}/${path}/${id}`)).status).toBe(204);
    for (const method of ["GET", "DELETE"])
      expect((await http.call(method, `${prefix}/${path}/${id}`)).json).toMatchObject({
        status: 404,
        title: "Not Found",
      });
  });

  it("volumes are of one kind: another is refused in words", async () => {
    const volume = { name: "v", size: 10, dataCenter: "EU-RO-1", type: "HIGH_PERFORMANCE" };
    const { status, json } = await http.post(`${prefix}/network-volumes`, volume);
    expect([status, json.detail]).toEqual([400, "There are no HIGH_PERFORMANCE volumes here: use STANDARD."]);
  });

  it("registries are stored and never shown", async () => {
    const body = { name: "r", username: "u", password: "hunter2" };
    const made = await http.post(`${prefix}/registries`, body);
    expect([made.status, made.json]).toEqual([201, { id: expect.any(String), name: "r" }]);
    const listed = await http.get(`${prefix}/registries`);
    expect(listed.json.registries).toContainEqual(made.json);
    expect(listed.text).not.toContain("hunter2");
    expect((await http.call("DELETE", `${prefix}/registries/${made.json.id}`)).status).toBe(204);
  });

  it.each([
    ["clusters", "clusters"],
    ["global-volumes", "globalVolumes"],
    ["registries/delegations", "delegations"],
  ])("%s are an empty list, and cannot be made", async (path, field) => {
    expect((await http.get(`${prefix}/${path}`)).json).toEqual({ [field]: [] });
    const refused = await http.post(`${prefix}/${path}`, { name: "n" });
    expect([refused.status, refused.json.detail]).toEqual([400, expect.stringMatching(/only at the hosted service/)]);
    expect((await http.get(`${prefix}/${path}/some`)).status).toBe(404);
  });
});

describe("The account", () => {
  it("has SSH keys, which are replaced as a whole and are the same over GraphQL", async () => {
    const keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 me@here", "ssh-rsa AAAAB3NzaC1yc2E"];
    const put = (body: unknown) => http.call("PUT", "/v2/account/ssh-keys", { body });
    expect((await put({ keys })).json).toEqual({ keys });
    expect((await http.get("/v2/account/ssh-keys")).json).toEqual({ keys });
    const { json } = await http.post("/graphql", { query: "{ myself { pubKey } }" });
    expect(json.data.myself.pubKey).toBe(keys.join("\n"));
    const refused = await put({ keys: ["PRIVATE KEY"] });
    expect([refused.status, refused.json.detail]).toEqual([422, expect.stringMatching(/an SSH public key/)]);
    expect((await put({ keys: [] })).json).toEqual({ keys: [] });
  });
});

describe("Public templates", () => {
  it("of all users are in the catalog, with the names of their variables alone", async () => {
    const stranger = await scene.user({ isAdmin: false });
    const theirs = await scene.addKey("mr_theirs", stranger);
    const shared = await scene.template({ imageName: "alpine:3", isPublic: true, env: { TOKEN: "hidden" } }, theirs);
    const hidden = await scene.template({ imageName: "alpine:3" }, theirs);
    const { templates } = (await http.get("/v2/catalog/templates?source=community")).json;
    expect(templates).toContainEqual(expect.objectContaining({ id: shared.id, env: { TOKEN: "…" } }));
    expect((await http.get("/v2/catalog/templates?source=official")).json).toEqual({ templates: [] });
    expect((await http.get(`/v2/catalog/templates/${shared.id}`)).json.image).toBe("alpine:3");
    expect((await http.get(`/v2/catalog/templates/${hidden.id}`)).status).toBe(404);
    const also = "includePublicTemplates=true";
    const own = (await http.get("/v1/templates")).json.length;
    expect((await http.get(`/v1/templates?${also}`)).json).toHaveLength(own + 1);
    expect((await http.get(`/v1/templates/${shared.id}?${also}`)).json).toMatchObject({ env: { TOKEN: "…" } });
    const refused = [`${shared.id}`, `${hidden.id}?${also}`];
    for (const path of refused) expect((await http.get(`/v1/templates/${path}`)).status).toBe(404);
    const builds = await http.get(`/v2/serverless/${(await scene.endpoint()).id}/builds`);
    expect(builds.json).toEqual({ builds: [] });
  });
});

describe("The catalog", () => {
  const gpu = { id: "GPU-1", index: 0, name: "NVIDIA L4", memoryMib: 23_034, driver: "550" };

  it("lists GPU types with their tiers, and how many are free", async () => {
    facts = { ...plainHost, gpus: [gpu], gpusEnforced: true };
    const { gpus } = (await http.get("/v2/catalog/gpus?include=AVAILABILITY&count=1")).json;
    const found = Object.fromEntries(gpus.map((each: { id: string }) => [each.id, each]));
    expect(found["NVIDIA L4"]).toMatchObject({
      pool: "AMPERE_24",
      manufacturer: "NVIDIA",
      memory: 24,
      maxCount: { secure: 1 },
      availability: "LOW",
    });
    expect(found["NVIDIA A40"].availability).toBe("NONE");
    expect(found["Tesla T4"].pool).toBeNull();
    const two = (await http.get("/v2/catalog/gpus/NVIDIA%20L4?include=AVAILABILITY&count=2")).json;
    expect(two.availability).toBe("NONE");
    const withCuda = async (version: string) =>
      (await http.get(`/v2/catalog/gpus/NVIDIA%20L4?include=AVAILABILITY&minCudaVersion=${version}`)).json.availability;
    expect([await withCuda("12"), await withCuda("12.4"), await withCuda("12.5")]).toEqual(["LOW", "LOW", "NONE"]);
    expect((await http.get("/v2/catalog/gpus/NVIDIA%20L4")).json).not.toHaveProperty("availability");
  });

  it("says that every GPU is to be had where GPUs are not enforced", async () => {
    facts = { ...plainHost, gpus: [], gpusEnforced: false };
    expect((await http.get("/v2/catalog/gpus/NVIDIA%20A40?include=AVAILABILITY")).json.availability).toBe("HIGH");
  });

  it("lists CPU flavours and data centres", async () => {
    const { cpus } = (await http.get("/v2/catalog/cpus?include=AVAILABILITY&vcpuCount=2")).json;
    expect(cpus[0]).toMatchObject({ id: "cpu3c", ramGbPerVcpu: 2, availability: expect.any(String) });
    const { dataCenters } = (await http.get("/v2/catalog/datacenters?regions=EUROPE&include=GPU_AVAILABILITY")).json;
    expect(dataCenters.map(({ region }: { region: string }) => region)).not.toContain("NORTH_AMERICA");
    expect(dataCenters[0]).toMatchObject({ id: "EU-RO-1", globalNetwork: false, gpuAvailability: expect.any(Array) });
    expect((await http.get("/v2/catalog/datacenters/nowhere")).status).toBe(404);
  });

  it.each(["include=EVERYTHING", "count=0", "count=many", "cloud=MINE"])("refuses %s", async (query) => {
    expect((await http.get(`/v2/catalog/gpus?${query}`)).status).toBe(400);
  });
});
