import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "../harness.js";
import { millrace, millraceHere, toServer } from "./millrace.js";

let server: TestServer;
let root: string;
let folder: string;
let folders = 0;
beforeAll(async () => {
  server = await startServer();
  root = mkdtempSync(join(tmpdir(), "millrace-deploy-"));
});
afterAll(async () => {
  await server?.end();
  rmSync(root, { recursive: true, force: true });
});
beforeEach(() => {
  folder = join(root, `mill-${++folders}`);
  mkdirSync(folder);
});

const write = (file: string, text: string) => writeFileSync(join(folder, file), text);
const run = (...words: string[]) => millraceHere(words, { env: toServer(server), folder });
const json = async (...words: string[]) => {
  const ended = await run(...words, "--json");
  expect(ended).toMatchObject({ exit: 0, err: "" });
  return JSON.parse(ended.out);
};
const handler = (text: string) => `export default () => ${JSON.stringify(text)};`;

describe("millrace deploy", () => {
  it("makes the template and the endpoint of a folder, says how to call it, and changes it when run again", async () => {
    write("handler.js", handler("first"));
    const first = await run("deploy", ".");
    const name = `mill-${folders}`;
    expect(first).toMatchObject({ exit: 0, err: "" });
    expect(first.out).toMatch(
      new RegExp(
        `✓ handler.js.*\\n.*✓ template ${name} .*\\n.*✓ endpoint ${name} +made, workers 0–3\\n\\n {2}millrace run ${name} .*\\n {2}curl -s http`,
      ),
    );
    expect((await run("run", name, "{}")).out).toBe("first\n");
    const { version } = await json("deploy", ".");
    expect(version).toBe(1); // nothing differs
    write("handler.js", handler("second"));
    expect((await run("deploy", ".")).out).toMatch(/✓ endpoint .* version 2 with the changed code, workers 0–3\n/);
    expect((await run("run", name, "{}")).out).toBe("second\n");
    expect((await json("deploy", ".")).version).toBe(2);
    write("millrace.toml", '[env]\nLEVEL = "debug"\nCOUNT = 3\n[scaling]\nworkers_max = 5\nidle_timeout = 9\n');
    const changed = await run("deploy", ".");
    expect(changed).toMatchObject({ out: expect.stringMatching(/✓ endpoint .* version 3, workers 0–5\n/), err: "" });
    expect(await json("endpoint", "get", name)).toMatchObject({ workersMax: 5, idleTimeout: 9 });
    expect(await json("template", "get", name)).toMatchObject({ env: { LEVEL: "debug", COUNT: "3" } });
    expect((await run("endpoint", "list")).out.match(new RegExp(`^${name} `, "gm"))).toHaveLength(1);
  });

  it("reads everything that a file says, in YAML as well", async () => {
    await run("secret", "create", "name=hf", "value=hidden");
    const volume = await json("volume", "create", "name=models", "size=1", "dataCenterId=EU-RO-1");
    const auth = await json("registry", "create", "name=hub", "username=me", "password=x");
    write(
      "millrace.yaml",
      `name: yaml-mill
image: registry.example/mill:1
command: [python, -u, serve.py]
registry: hub
volumes: [models]
disk_gb: 20
ports: [8000/http]
gpus: [NVIDIA L4, NVIDIA A40]
gpu_count: 2
cuda: "12.4"
timeout: 60
scaling: { workers_min: 0, workers_max: 0, requests_per_worker: 4 }
env: { TOKEN: { secret: hf } }
`,
    );
    const { id, templateId } = await json("deploy", ".");
    expect(await json("endpoint", "get", id)).toMatchObject({
      name: expect.stringMatching(/^yaml-mill/),
      gpuTypeIds: ["NVIDIA L4", "NVIDIA A40"],
      gpuCount: 2,
      minCudaVersion: "12.4",
      networkVolumeIds: [volume.id],
      scalerType: "REQUEST_COUNT",
      scalerValue: 4,
      executionTimeoutMs: 60_000,
    });
    expect(await json("template", "get", templateId)).toMatchObject({
      imageName: "registry.example/mill:1",
      dockerStartCmd: ["python", "-u", "serve.py"],
      containerRegistryAuthId: auth.id,
      containerDiskInGb: 20,
      env: { TOKEN: "{{ RUNPOD_SECRET_hf }}" },
    });
  });

  it("puts back to its default what a file named before and names no more, and leaves the rest", async () => {
    write("handler.js", handler("x"));
    const all = 'gpus = ["NVIDIA L4"]\ntimeout = 60\ndisk_gb = 9\nplace = "machines"\nflashboot = true\n';
    write(
      "millrace.toml",
      `${all}[scaling]\nworkers_max = 2\nidle_timeout = 77\nrequests_per_worker = 3\n[env]\nA = "1"\n`,
    );
    const { id, templateId } = await json("deploy", ".");
    await run("endpoint", "update", id, "workersMin=1", "workersMax=4"); // by hand, which the file overrules where it speaks
    write("millrace.toml", "[scaling]\nworkers_max = 2\n");
    await json("deploy", ".");
    const endpoint = await json("endpoint", "get", id);
    expect(endpoint).toMatchObject({
      gpuTypeIds: [],
      executionTimeoutMs: 600_000,
      idleTimeout: 5,
      scalerType: "QUEUE_DELAY",
      scalerValue: 4,
      workersMax: 2,
      workersMin: 1,
    });
    expect(endpoint).not.toHaveProperty("place");
    expect(endpoint.name).not.toMatch(/ -fb$/);
    expect(await json("template", "get", templateId)).toMatchObject({ env: {}, containerDiskInGb: 50 });
    await run("endpoint", "update", id, "idleTimeout=33");
    await json("deploy", ".");
    expect(await json("endpoint", "get", id)).toMatchObject({ idleTimeout: 33 });
  });

  it("refuses a secret that does not exist, and CPUs for workers with GPUs, before anything is saved", async () => {
    write("handler.js", handler("x"));
    write("millrace.toml", 'env = { TOKEN = { secret = "nope" } }\n');
    const secret = await run("deploy", ".");
    expect(secret).toMatchObject({
      exit: 2,
      err: expect.stringContaining('There is no secret "nope", which env names.'),
    });
    expect(secret.err).toContain("millrace secret create name=nope value=@FILE");
    write("millrace.toml", "");
    const { version } = await json("deploy", ".");
    write("millrace.toml", "cpus = 2\n");
    const kind = await run("deploy", ".");
    expect(kind).toMatchObject({
      exit: 2,
      err: expect.stringMatching(/run on GPUs, which cannot be changed: delete it/),
    });
    expect(await json("endpoint", "get", `mill-${folders}`)).toMatchObject({ computeType: "GPU", version });
  });

  it("writes names and paths so that they can be pasted", async () => {
    folder = join(folder, "my mill");
    mkdirSync(folder);
    write("handler.js", handler("x"));
    expect((await run("deploy", ".")).out).toContain("millrace run 'my mill' ");
  });

  it("takes the name and the image from the command line before the file's", async () => {
    write("millrace.toml", 'name = "filed"\nimage = "registry.example/filed:1"\n[scaling]\nworkers_max = 0\n');
    const { templateId } = await json("deploy", ".", "--name", "given", "--image", "registry.example/given:2");
    expect(await json("template", "get", templateId)).toMatchObject({
      name: "given",
      imageName: "registry.example/given:2",
    });
  });

  it.each([
    ["colour = 1", 2, 'millrace.toml: "colour" is unknown; there are name, image'],
    ["[scaling]\nworkers = 1", 2, '"scaling.workers" is unknown; there are workers_min, workers_max'],
    ["gpu_count = 0", 2, 'millrace.toml: "gpu_count" must be >= 1'],
    ["name = ", 2, "millrace.toml is not valid"],
    ['gpus = ["NVIDIA L4"]\ncpus = 2', 2, "either gpus or cpus"],
    ["[scaling]\nqueue_delay = 4\nrequests_per_worker = 1", 2, "either queue_delay or requests_per_worker"],
    ['volumes = ["nowhere"]', 2, 'Volume "nowhere" does not exist.'],
    ['registry = "nowhere"', 2, 'Registry "nowhere" does not exist.'],
    ['gpus = ["Abacus"]', 3, "Abacus"],
  ])("refuses %j in words, and leaves nothing behind", async (file, exit, why) => {
    write("handler.js", handler("x"));
    write("millrace.toml", file);
    expect(await run("deploy", ".")).toMatchObject({ exit, err: expect.stringContaining(why) });
    for (const noun of ["endpoint", "template"])
      expect((await run(noun, "list")).out).not.toMatch(new RegExp(`^mill-${folders} `, "m"));
  });

  it("refuses a folder for another machine's server, and one with neither handler nor image", async () => {
    expect(await run("deploy", ".")).toMatchObject({ exit: 2, err: expect.stringContaining("There is no handler.ts") });
    expect(await run("deploy", ".", "--build")).toMatchObject({ exit: 2, err: expect.stringMatching(/no Dockerfile/) });
    write("Dockerfile", "FROM scratch\n");
    const noEngine = { ...toServer(server), DOCKER_HOST: `unix://${folder}/none.sock` };
    expect(await millrace(["deploy", ".", "--build"], { env: noEngine, folder })).toMatchObject({
      exit: 1,
      err: expect.stringContaining("No Docker engine answers here, which would build the image.  millrace doctor"),
    });
    write("handler.js", handler("x"));
    const env = { ...toServer(server), MILLRACE_URL: server.url.replace("127.0.0.1", "0.0.0.0") };
    expect(await millrace(["deploy", "."], { env, folder })).toMatchObject({
      exit: 2,
      err: expect.stringMatching(/is another machine's, which has no .*: deploy an image. {2}millrace deploy --build/),
    });
  });

  it("takes a handler's file, which needs no usual name", async () => {
    write("loud.js", handler("LOUD"));
    expect((await run("deploy", "loud.js")).out).toMatch(/✓ endpoint loud +made/);
    expect((await run("run", "loud", "{}")).out).toBe("LOUD\n");
  });

  it("prints the schema of its file", async () => {
    const { out } = await run("deploy", "--schema");
    expect(JSON.parse(out)).toMatchObject({ type: "object", properties: { scaling: { type: "object" } } });
  });
});
