import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startDocker, type TestDocker } from "../../scripts/docker.mjs";
import { uniqueName } from "../e2e/resources.js";
import { call, startServer, type TestServer } from "../harness.js";

const handler = `
import runpod

def handler(job):
    if job["input"].get("fail"):
        raise ValueError("told to")
    return {"echo": job["input"]["text"], "id": job["id"]}

def stream(job):
    for n in range(3):
        yield {"n": n}

runpod.serverless.start({"handler": handler})
`;

/** Where the Python of the tests lives: its program, its library, and the stock package with what it loads. */
function pythonHere(): { program: string; library: string; packages: string; objects: string[] } {
  const venv = process.env.MILLRACE_TEST_VENV ?? "";
  const facts = execFileSync(join(venv, "bin/python"), [
    "-c",
    `import glob, json, os, sys, sysconfig
paths = sysconfig.get_paths()
found = [*glob.glob(paths["stdlib"] + "/lib-dynload/*.so"), *glob.glob(paths["purelib"] + "/**/*.so", recursive=True)]
print(json.dumps({"program": os.path.realpath(sys.executable), "library": paths["stdlib"], "packages": paths["purelib"], "objects": found}))`,
  ]);
  return JSON.parse(facts.toString());
}

/** Python's own library, without what else is kept in its folder. */
const libraryFiles = (library: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(library)
      .filter(
        (name) =>
          !/^(site-packages|dist-packages|test|idlelib|ensurepip|turtledemo|lib2to3|config-.*|__pycache__)$/.test(name),
      )
      .map((name) => [join(library, name), join(library, name)]),
  );

let engine: TestDocker;
let server: TestServer;
let endpoint: string;
beforeAll(async () => {
  engine = await startDocker();
  const folder = mkdtempSync(join(tmpdir(), "millrace-image-"));
  writeFileSync(join(folder, "handler.py"), handler);
  const { program, library, packages, objects } = pythonHere();
  const imageName = engine.makeImage("millrace-test/python:1", {
    programs: [program],
    libraries: objects,
    files: { ...libraryFiles(library), "/packages": packages, "/handler.py": join(folder, "handler.py") },
    changes: ["ENV PYTHONPATH=/packages", `CMD ${JSON.stringify([program, "-u", "/handler.py"])}`],
  });
  rmSync(folder, { recursive: true });
  server = await startServer({ DOCKER_HOST: engine.host, MILLRACE_STOP_GRACE: "5" });
  const template = await call(server, "POST", "/v1/templates", { name: uniqueName(), imageName, isServerless: true });
  endpoint = (await call(server, "POST", "/v1/endpoints", { name: "stock", templateId: template.body.id })).body.id;
});
afterAll(async () => {
  await server?.end();
  await engine?.end();
});

it("the stock Python worker runs unchanged in a container, and its errors are its own", async () => {
  const run = async (input: unknown) =>
    (await call(server, "POST", `/v2/${endpoint}/runsync?wait=120000`, { input })).body;
  const done = await run({ text: "grüße" });
  expect(done).toMatchObject({ status: "COMPLETED", output: { echo: "grüße", id: done.id } });
  expect(await run({ fail: true })).toMatchObject({ status: "FAILED", error: expect.stringContaining("told to") });
  expect(await run({ text: "after" })).toMatchObject({ status: "COMPLETED" });
  await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
  // SIGTERM reaches it through the init process: it leaves by itself, within its grace
  await expect.poll(() => engine.docker("ps", "-aq"), { timeout: 20_000 }).toBe("");
}, 180_000);
