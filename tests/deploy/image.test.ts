import { execFile, execFileSync, spawnSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startDocker, type TestDocker } from "../../scripts/docker.mjs";
import { blocksOf } from "../docs/guide/blocks.js";
import { root, until } from "../harness.js";
import { openRegistry, type PushedTo } from "./registry.js";

const commit = "0123456789abcdef0123456789abcdef01234567";
let engine: TestDocker;
let folder: string;
let registry: PushedTo;
/** The name of the image in docs/guide/kubernetes.md, and the one that stands for it here. */
const named = "registry.example/me/millrace:v1";
let image: string;
/** What the guide says to build and push the image. */
const [block] = blocksOf("kubernetes").filter(({ words }) => words.test === "tests/deploy/image.test.ts");
const [build = "", push = ""] = (block?.text ?? "").split("\n");

/** Runs the guide's command on the engine; `more`: options that the engine of this test needs. */
async function follow(command: string, cwd: string, more: readonly string[] = []): Promise<void> {
  const [program, verb = "", ...words] = command.replaceAll(named, image).split(" ");
  expect(program).toBe("docker");
  const env = { ...process.env, DOCKER_CONFIG: folder };
  const said = ["-H", engine.host, verb, ...more, ...words];
  await promisify(execFile)("/usr/bin/docker", said, { cwd, env, maxBuffer: 2 ** 26 });
}

beforeAll(async () => {
  engine = await startDocker();
  registry = await openRegistry();
  image = named.replace("registry.example", registry.address);
  folder = mkdtempSync(join(tmpdir(), "millrace-image-"));
  makeBase("node:24-bookworm-slim");
  const context = copyContext();
  // the network that npm inside the build needs is this machine's own
  await follow(build, context, ["--network", "host", "--build-arg", `MILLRACE_COMMIT=${commit}`]);
}, 600_000);
afterAll(async () => {
  await engine?.end();
  await registry?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What the Dockerfile needs of the image that it builds on, from this machine. */
function makeBase(name: string): void {
  execFileSync("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error", "npm@11"]);
  const command = (program: string) => `#!/bin/sh\nexec node /npm/bin/${program}-cli.js "$@"\n`;
  for (const program of ["npm", "npx"]) writeFileSync(join(folder, program), command(program), { mode: 0o755 });
  writeFileSync(join(folder, "passwd"), "root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000:node:/home/node:/bin/sh\n");
  writeFileSync(join(folder, "group"), "root:x:0:\nnode:x:1000:\n");
  const tools = ["sh", "env", "install", "rm", "find"].map((tool) =>
    execFileSync("sh", ["-c", `command -v ${tool}`], { encoding: "utf8" }).trim(),
  );
  const certificates = "/etc/ssl/certs/ca-certificates.crt";
  const registry = execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).trim();
  engine.makeImage(name, {
    programs: [process.execPath, "/bin/sh", ...tools],
    // what builds the dashboard loads libraries that every Debian has
    libraries: globSync(["node_modules/@rolldown/*/*.node", "node_modules/lightningcss-*/*.node"], { cwd: root }).map(
      (path) => join(root, path),
    ),
    files: {
      "/npm": join(folder, "node_modules/npm"),
      "/usr/bin/npm": join(folder, "npm"),
      "/usr/bin/npx": join(folder, "npx"),
      "/etc/passwd": join(folder, "passwd"),
      "/etc/group": join(folder, "group"),
      [certificates]: certificates,
    },
    changes: [
      `ENV PATH=${dirname(process.execPath)}:/usr/bin:/bin`,
      `ENV npm_config_registry=${registry} NODE_EXTRA_CA_CERTS=${certificates}`,
    ],
  });
}

/** What `.dockerignore` lets through. An engine without BuildKit knows it only by that name. */
function copyContext(): string {
  const context = join(folder, "context");
  mkdirSync(join(context, "deploy"), { recursive: true });
  for (const name of ["package.json", "package-lock.json", "tsconfig.base.json", "tsconfig.json", "LICENSE"])
    cpSync(join(root, name), join(context, name));
  const scripts = ["scripts/bundle.mjs", "scripts/docs/guide.mjs"];
  for (const name of ["deploy/Dockerfile", ...scripts]) cpSync(join(root, name), join(context, name));
  const filter = (path: string) => !["node_modules", "dist"].includes(basename(path));
  for (const name of ["packages", "docs"]) cpSync(join(root, name), join(context, name), { recursive: true, filter });
  return context;
}

it("The image is pushed to a registry, as docs/guide/kubernetes.md says", async () => {
  await follow(push, folder);
  expect(registry.pushed()).toEqual([named.slice("registry.example/".length)]);
});

it("The image runs jobs on a read-only file system, without capabilities and not as root", async () => {
  mkdirSync(join(folder, "handlers/whoami"), { recursive: true });
  writeFileSync(join(folder, "handlers/whoami/handler.mjs"), "export default () => process.getuid();\n");
  const hardened = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges:true"];
  const shared = ["-v", `${join(folder, "handlers")}:/handlers:ro`, "-v", "millrace-data:/data"];
  const settings = ["-e", "MILLRACE_API_KEY=mr_a_key_for_this_test_alone"];
  const id = engine.docker("run", "-d", "--init", ...hardened, ...shared, ...settings, image);
  const [{ NetworkSettings }] = JSON.parse(engine.docker("inspect", id));
  const url = `http://${NetworkSettings.IPAddress}:8000`;
  const call = async (method: string, path: string, body?: unknown) => {
    const headers = { authorization: "Bearer mr_a_key_for_this_test_alone", "content-type": "application/json" };
    const reply = await fetch(`${url}${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    return reply.json() as Promise<Record<string, unknown>>;
  };
  const isHealthy = () => engine.docker("inspect", "-f", "{{.State.Health.Status}}", id) === "healthy";
  await until(isHealthy, 60_000).catch((error) => {
    throw new Error(`${error.message}: ${engine.docker("logs", id)}`);
  });
  const { version } = JSON.parse(readFileSync(join(root, "packages/server/package.json"), "utf8"));
  expect(await call("GET", "/healthz")).toMatchObject({ status: "ok", version, commit: commit.slice(0, 9) });
  const template = await call("POST", "/v1/templates", {
    name: "whoami",
    imageName: "/handlers/whoami",
    isServerless: true,
  });
  const endpoint = await call("POST", "/v1/endpoints", { name: "whoami", templateId: template.id });
  const job = await call("POST", `/v2/${endpoint.id}/runsync?wait=60000`, { input: {} });
  expect(job).toMatchObject({ status: "COMPLETED", output: 1_000 });
  const asked = ["-e", "require('node:fs').writeFileSync('/app/changed', '')"];
  const written = spawnSync("/usr/bin/docker", ["-H", engine.host, "exec", id, "node", ...asked], { encoding: "utf8" });
  expect(written.stderr).toContain("EROFS");
  engine.docker("stop", "-t", "30", id);
  expect(engine.docker("inspect", "-f", "{{.State.ExitCode}}", id)).toBe("0");
}, 180_000);
