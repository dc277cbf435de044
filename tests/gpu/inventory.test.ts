import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { millrace, toServer } from "../cli/millrace.js";
import { removeFolders, script } from "../compat/stock.js";
import { call, makeEndpoint, root, startServer, type TestServer, until } from "../harness.js";
import { FakeNvidiaSmi, fakeGpu } from "./fake-nvidia-smi.js";

const novel = "NVIDIA GeForce RTX 2060";
let fake: FakeNvidiaSmi;
let server: TestServer;
beforeAll(async () => {
  fake = new FakeNvidiaSmi({ gpus: [fakeGpu(0), fakeGpu(1), fakeGpu(2, novel, 6_144)] });
  server = await startServer({ PATH: fake.path });
  await until(() => told(server, "gpu.found").length > 0); // it serves before it has found its GPUs
});
afterAll(async () => {
  await server?.end();
  fake?.remove();
  removeFolders();
});

/** The lines of a server's log with this event. */
const told = (at: TestServer, event: string) =>
  at
    .log()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line.event === event);

async function countOf(id: string, at = server): Promise<number> {
  const query = `{ gpuTypes(input: { id: "${id}" }) { maxGpuCount } }`;
  const { body } = await call(at, "POST", "/graphql", { query });
  return body.data.gpuTypes[0]?.maxGpuCount;
}

describe("a server with GPUs", () => {
  it("names them at its start", () => {
    const found = told(server, "gpu.found");
    expect(found.map(({ gpuId, name, memoryMib, driver }) => [gpuId, name, memoryMib, driver])).toEqual([
      [fakeGpu(0).uuid, "NVIDIA L4", 23_034, "550.90.12"],
      [fakeGpu(1).uuid, "NVIDIA L4", 23_034, "550.90.12"],
      [fakeGpu(2).uuid, novel, 6_144, "550.90.12"],
    ]);
    expect(server.log()).not.toContain("MILLRACE_ENFORCE_GPUS");
  });

  it("accepts a type that only this host has, and refuses unknown types", async () => {
    const template = { name: "t", imageName: import.meta.dirname, dockerStartCmd: ["true"] };
    const templateId = (await call(server, "POST", "/v1/templates", template)).body.id;
    const create = (name: string) =>
      call(server, "POST", "/v1/endpoints", { name: "e", templateId, workersMax: 0, gpuTypeIds: [name] });
    expect((await create(novel)).body.gpuTypeIds).toEqual([novel]);
    expect(await create("NVIDIA GeForce RTX 1")).toMatchObject({ status: 400, body: { code: "INVALID_INPUT" } });
  });

  it("detects a GPU that fails, and a GPU that comes back", async () => {
    expect(await countOf("NVIDIA L4")).toBe(2);
    fake.change(0, { health: "unreachable" });
    await until(async () => (await countOf("NVIDIA L4")) === 1, 30_000);
    await until(() => told(server, "gpu.lost").length > 0); // its log comes by another way than its answers
    expect(told(server, "gpu.lost")).toMatchObject([
      { gpuId: fakeGpu(0).uuid, why: "GPU0: 0000:10:00.0 cannot be reached (Unknown Error)." },
    ]);
    fake.change(0, { health: "ok" });
    await until(async () => (await countOf("NVIDIA L4")) === 2, 30_000);
    await until(() => told(server, "gpu.back").length > 0);
    expect(told(server, "gpu.back")).toMatchObject([{ gpuId: fakeGpu(0).uuid }]);
  });
});

describe("a worker on a GPU", () => {
  it("has the GPU to itself; it stops when the GPU fails, and a waiting worker starts on its return", async () => {
    const hello = join(root, "examples/hello");
    const settings = { gpuTypeIds: [novel], workersMin: 1, workersMax: 1 };
    const [first, second] = [await makeEndpoint(server, hello, settings), await makeEndpoint(server, hello, settings)];
    const workersOf = async (id: string) => (await call(server, "GET", `/v1/endpoints/${id}/workers`)).body;
    const holds = async (id: string) => {
      const workers = await workersOf(id);
      return workers.find((each: { endedAt?: string; gpus?: { id: string }[] }) => !each.endedAt && each.gpus?.length);
    };
    const holder = await until(async () => ((await holds(first)) ? first : (await holds(second)) && second));
    const other = holder === first ? second : first;
    expect((await holds(holder)).gpus).toMatchObject([{ id: fakeGpu(2).uuid, name: novel }]);
    const waiting = await until(async () =>
      (await workersOf(other)).find((each: { state: string }) => each.state === "throttled"),
    );
    expect(JSON.stringify(waiting)).toContain(holder);
    const top = async () => JSON.parse((await millrace(["top", "--json"], { env: toServer(server) })).out);
    const given = async () => (await top()).reduce((sum: number, { gpus }: { gpus: number }) => sum + gpus, 0);
    await expect.poll(given).toBe(1);
    fake.change(2, { health: "lost" });
    await until(async () => !(await holds(holder)), 40_000);
    expect(await holds(other)).toBeUndefined();
    await call(server, "PATCH", `/v1/endpoints/${holder}`, { workersMin: 0, workersMax: 0 });
    fake.change(2, { health: "ok" });
    await until(async () => holds(other), 40_000);
    await call(server, "PATCH", `/v1/endpoints/${other}`, { workersMin: 0, workersMax: 0 });
  });
});

describe("the stock Python client", () => {
  it("lists the GPU types, with the number that this server has", async () => {
    const types = await script(server, "gpu_client", "types");
    expect(types).toContainEqual({ id: "NVIDIA GeForce RTX 4090", displayName: "RTX 4090", memoryInGb: 24 });
    expect(types.at(-1)).toEqual({ id: novel, displayName: "RTX 2060", memoryInGb: 6 });
    expect(types.every((type: { memoryInGb: number }) => type.memoryInGb > 0)).toBe(true);
  });

  it("reads one type", async () => {
    expect(await script(server, "gpu_client", "one", "NVIDIA L4", "2")).toMatchObject({
      id: "NVIDIA L4",
      displayName: "L4",
      manufacturer: "Nvidia",
      memoryInGb: 24,
      maxGpuCount: 2,
      lowestPrice: { minimumBidPrice: null, uninterruptablePrice: null },
    });
  });

  it("gets an error for an unknown type", async () => {
    expect(await script(server, "gpu_client", "unknown", "NVIDIA GeForce RTX 1")).toContain("No GPU found");
  });
});

describe("a separate server", () => {
  const servers: { server: TestServer; fake: FakeNvidiaSmi }[] = [];
  afterEach(async () => {
    for (const each of servers.splice(0)) {
      await each.server.end();
      each.fake.remove();
    }
  });

  async function start(state: ConstructorParameters<typeof FakeNvidiaSmi>[0], env: Record<string, string> = {}) {
    const its = new FakeNvidiaSmi(state);
    const made = await startServer({ PATH: its.path, ...env });
    servers.push({ server: made, fake: its });
    await until(() => told(made, "gpu.found").length + told(made, "gpu.none").length > 0);
    return made;
  }

  it("without GPUs says so once at its start, and still lists the types", async () => {
    const bare = await start({ gpus: [] });
    const said = told(bare, "gpu.none").map(({ msg }) => msg);
    expect(said).toEqual([expect.stringMatching(/recorded, but not enforced.*nvidia-smi finds no GPU/)]);
    expect(await countOf("NVIDIA L4", bare)).toBe(0);
  });

  it("accepts jobs and results while the driver does not answer yet, and gives out no GPU", async (test) => {
    const hung = new FakeNvidiaSmi({ gpus: [fakeGpu(0)], mode: "hang" });
    const begun = startServer({ PATH: hung.path, MILLRACE_DEMO: "off" });
    test.onTestFinished(async () => {
      await (await begun).end();
      hung.remove();
    });
    const at = await begun;
    expect(hung.calls()).toHaveLength(1);
    expect([...told(at, "server.warning"), ...told(at, "gpu.none")]).toEqual([]);
    expect(await call(at, "GET", "/v1/endpoints")).toMatchObject({ status: 200 });
  });

  it("starts, and reports why it has no GPU, if driver and library do not match", async () => {
    const broken = await start({ gpus: [fakeGpu(0)], mode: "mismatch" });
    expect(told(broken, "gpu.none").map(({ msg }) => msg)).toEqual([
      expect.stringMatching(/wait for one.*restart the machine/),
    ]);
  });

  it("gives out only the GPUs that it may use", async () => {
    const some = await start({ gpus: [fakeGpu(0), fakeGpu(1)] }, { MILLRACE_GPUS: `1` });
    expect(told(some, "gpu.found").map(({ gpuId }) => gpuId)).toEqual([fakeGpu(1).uuid]);
    expect(await countOf("NVIDIA L4", some)).toBe(1);
  });
});
