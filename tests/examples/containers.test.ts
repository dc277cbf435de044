import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { startDocker, type TestDocker } from "../../scripts/docker.mjs";
import { makeNodeImage, makePythonImage } from "../../scripts/images.mjs";
import { venv } from "../compat/stock.js";
import { blocksOf } from "../docs/guide/blocks.js";
import { call, makeEndpoint, root, startServer, type TestServer } from "../harness.js";

/** Installs nothing: the package is in the image. It fails unless exactly that package is requested. */
const pip = `#!/bin/sh
[ "$1 $2 $3" = "install --no-cache-dir -r" ] || { echo "unknown: $*" >&2; exit 2; }
while read -r name; do
  case "$name" in runpod*) ;; *) echo "not here: $name" >&2; exit 1 ;; esac
done < "$4"
`;

let engine: TestDocker;
let server: TestServer;
let folder: string;
beforeAll(async () => {
  engine = await startDocker();
  folder = mkdtempSync(join(tmpdir(), "millrace-example-"));
  server = await startServer({ DOCKER_HOST: engine.host, MILLRACE_STOP_GRACE: "5" });
});
afterAll(async () => {
  await server?.end();
  await engine?.end();
  rmSync(folder, { recursive: true, force: true });
});

const example = (name: string) => join(root, "examples", name);

/** The base images of the examples' Dockerfiles, made of this machine's programs: no registry is reachable. */
const bases: Record<string, () => string> = {
  "python:3.12-slim": () => {
    const path = join(folder, "pip");
    writeFileSync(path, pip);
    chmodSync(path, 0o755);
    const links = { "/usr/local/bin/python": join(venv(), "bin/python"), "/usr/local/bin/pip": path };
    return makePythonImage(engine, "python:3.12-slim", { venv: venv(), programs: ["/bin/sh"], files: links });
  },
  "node:22-bookworm-slim": () => {
    const users = join(folder, "passwd");
    writeFileSync(users, "root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n");
    const links = { "/usr/local/bin/node": process.execPath, "/etc/passwd": users };
    return makeNodeImage(engine, "node:22-bookworm-slim", { programs: ["/bin/sh"], files: links });
  },
};

/** Builds an example as its page says, on such a base, and makes an endpoint with the image. */
async function deployed(name: string, base: string, context = example(name)): Promise<string> {
  bases[base]?.();
  engine.docker("build", "-q", "-t", `example/${name}:1`, context);
  const endpoint = await makeEndpoint(server, `example/${name}:1`, { computeType: "CPU" });
  onTestFinished(async () => void (await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`)));
  return endpoint;
}
const runsync = async (endpoint: string, input: unknown) =>
  (await call(server, "POST", `/v2/${endpoint}/runsync?wait=60000`, { input })).body;

it("docs/guide/images.md shows the Dockerfile of the example", () => {
  const [block] = blocksOf("images").filter(({ words }) => words.test === "tests/examples/containers.test.ts");
  expect(`${block?.text}\n`).toBe(readFileSync(join(root, "examples/container/Dockerfile"), "utf8"));
});

describe("each example that is a container is built from its own Dockerfile, and answers as its page says:", () => {
  it("container guesses languages with the stock package, and fails on a text without words", async () => {
    const endpoint = await deployed("container", "python:3.12-slim");
    expect(await runsync(endpoint, { text: "the mill is on the stream" })).toMatchObject({
      status: "COMPLETED",
      output: { language: "en", scores: { de: 0, en: 4, fr: 0 } },
    });
    expect(await runsync(endpoint, { text: "" })).toMatchObject({
      status: "FAILED",
      error: "input.text holds no words",
    });
  });

  it("container-node makes addresses with our SDK, as an unprivileged user", async () => {
    const context = join(folder, "container-node");
    cpSync(example("container-node"), context, { recursive: true });
    cpSync(join(root, "packages/worker/dist"), join(context, "worker"), { recursive: true });
    const endpoint = await deployed("container-node", "node:22-bookworm-slim", context);
    expect(await runsync(endpoint, { text: "Grüße, Welt!" })).toMatchObject({
      status: "COMPLETED",
      output: { slug: "gruesse-welt" },
    });
    expect(await runsync(endpoint, {})).toMatchObject({ status: "FAILED" });
    const [container] = engine.docker("ps", "-q").split("\n") as [string];
    expect(engine.docker("inspect", "-f", "{{.Config.User}}", container)).toBe("node");
  });
});
