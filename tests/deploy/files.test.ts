import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readConfig } from "../../packages/server/src/config.js";
import { blocksOf } from "../docs/guide/blocks.js";
import { makeFolder } from "../e2e/handlers.js";
import { root } from "../harness.js";

const text = (name: string) => readFileSync(join(root, "deploy", name), "utf8");

/** The command of docs/guide/deployment.md that makes the keys. */
const [making] = blocksOf("deployment").filter(({ words }) => words.test === "tests/deploy/files.test.ts");

/** Runs make-env.sh in a clone, as the guide says, and returns the variables that it wrote, by name. */
function makeEnv(clone: string) {
  const folder = join(clone, "deploy");
  mkdirSync(folder, { recursive: true });
  for (const name of ["make-env.sh", ".env.example"]) copyFileSync(join(root, "deploy", name), join(folder, name));
  const { status, stderr } = spawnSync("sh", ["-c", making?.text ?? "exit 9"], { cwd: clone, encoding: "utf8" });
  const lines = readFileSync(join(folder, ".env"), "utf8").split("\n");
  const values = lines.filter((line) => /^[A-Z]/.test(line)).map((line) => line.split("=") as [string, string]);
  return { status, stderr, values: Object.fromEntries(values) };
}

describe("deploy/make-env.sh", () => {
  it("makes new secrets, in a file that only its owner can read", (test) => {
    const [one, other] = [makeFolder(test), makeFolder(test)];
    const [first, second] = [makeEnv(one), makeEnv(other)];
    expect([first.status, second.status]).toEqual([0, 0]);
    expect(statSync(join(one, "deploy/.env")).mode & 0o077).toBe(0);
    for (const name of ["POSTGRES_PASSWORD", "MILLRACE_API_KEY", "MILLRACE_SEAL_KEY"]) {
      expect(first.values[name]?.length, name).toBeGreaterThan(40);
      expect(first.values[name], name).not.toBe(second.values[name]);
    }
  });

  it("never overwrites an existing file", (test) => {
    const folder = makeFolder(test);
    const first = makeEnv(folder);
    const second = makeEnv(folder);
    expect(second).toMatchObject({
      status: 1,
      values: first.values,
      stderr: expect.stringMatching(/is there already/),
    });
  });
});

describe("deploy/compose.yaml", () => {
  it("gives servers valid settings", (test) => {
    const { values } = makeEnv(makeFolder(test));
    const filled = text("compose.yaml").replace(/\$\{(\w+):[?-][^}]*\}/g, (_, name: string) => values[name] ?? "");
    const own = [...filled.matchAll(/^ {6}(MILLRACE_\w+): (.+)$/gm)].map(([, name, value]) => [name, value]);
    const shared = [...filled.matchAll(/^ {2}(MILLRACE_\w+): "?([^"\n]+)"?$/gm)].map(([, name, value]) => [
      name,
      value,
    ]);
    const image = [...text("Dockerfile").matchAll(/(MILLRACE_\w+)=(\S+)/g)].map(([, name, value = ""]) => [
      name,
      value.replace(/^\$\w+$/, ""), // the build's argument, empty unless it is given
    ]);
    const config = readConfig(Object.fromEntries([...image, ...shared, ...own]));
    expect(config).toMatchObject({
      host: "0.0.0.0",
      port: 8000,
      apiKey: values.MILLRACE_API_KEY,
      sealKey: values.MILLRACE_SEAL_KEY,
      databaseUrl: `postgres://millrace:${values.POSTGRES_PASSWORD}@database:5432/millrace`,
      workerUrl: "http://server-2:8000",
    });
  });

  it("is read by Debian's docker-compose", (test) => {
    const folder = makeFolder(test);
    makeEnv(folder);
    copyFileSync(join(root, "deploy/compose.yaml"), join(folder, "compose.yaml"));
    const words = ["-f", join(folder, "compose.yaml"), "--env-file", join(folder, "deploy/.env"), "config"];
    const read = spawnSync("/usr/bin/docker-compose", words, { encoding: "utf8" });
    expect(read).toMatchObject({ status: 0, stderr: "" });
    expect(read.stdout).toContain("read_only: true");
  });

  it("has no default password, and gives containers no more than they need", () => {
    const compose = text("compose.yaml");
    for (const [, name, fallback] of compose.matchAll(/\$\{(\w+)(:[^}]*)\}/g)) {
      if (/KEY|PASSWORD/.test(name as string)) expect(fallback, name).toMatch(/^:\?/);
    }
    expect(compose).not.toMatch(/privileged|network_mode|docker\.sock/);
    expect(compose.match(/<<: \*(hardened|server)\b/g)).toHaveLength(5);
    expect(text("Dockerfile")).toMatch(/^USER node$/m);
  });
});

describe("deploy/Dockerfile", () => {
  it("copies only existing files that .dockerignore does not exclude", () => {
    const allowed = [...text("Dockerfile.dockerignore").matchAll(/^!(.+)$/gm)].map(([, path]) => path as string);
    const copied = [...text("Dockerfile").matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths]) =>
      (paths as string).split(" "),
    );
    expect(copied.length).toBeGreaterThan(5);
    for (const path of copied) {
      expect(existsSync(join(root, path)), path).toBe(true);
      expect(
        [path, path.split("/")[0]].some((each) => allowed.includes(each as string)),
        path,
      ).toBe(true);
    }
    const { workspaces } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    for (const folder of workspaces) expect(copied).toContain(`${folder}/package.json`);
  });
});
