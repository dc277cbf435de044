import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root, until } from "../harness.js";

const names = ["api", "worker", "dashboard", "server", "cli"];
let folder: string;
/** What a package brings, by its folder here. */
const packed: Record<string, readonly string[]> = {};
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "millrace-packages-"));
  const tars = names.map((name) => {
    const cwd = join(root, "packages", name);
    const said = execFileSync("npm", ["pack", "--json", "--pack-destination", folder], { cwd, encoding: "utf8" });
    const told = JSON.parse(said.slice(said.search(/^[[{]/m)));
    const [{ filename, files }] = Object.values(told) as [{ filename: string; files: { path: string }[] }];
    packed[name] = files.map(({ path }) => path);
    return join(folder, filename.replace("@", "").replace("/", "-"));
  });
  mkdirSync(join(folder, "user"));
  writeFileSync(join(folder, "user/package.json"), '{ "private": true, "type": "module" }\n');
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error", ...tars], { cwd: inUse() });
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const inUse = (...path: string[]) => join(folder, "user", ...path);
const environment = { PATH: process.env.PATH, HOME: tmpdir() };
const millrace = (...words: string[]) =>
  execFileSync(inUse("node_modules/.bin/millrace"), words, { cwd: inUse(), env: environment, encoding: "utf8" });

describe("A packed package", () => {
  it.each(names)("has what runs, its license and a page about it, and nothing else: %s", (name) => {
    const files = packed[name] as readonly string[];
    expect(files).toEqual(expect.arrayContaining(["LICENSE", "README.md", "package.json"]));
    const others = files.filter(
      (path) => !/^dist\/(.+\.(js|d\.ts|json|py)|(app|guide)\/.+\.(html|svg|css|md|png|br|gz))$/.test(path),
    );
    expect(others.toSorted()).toEqual(["LICENSE", "README.md", "package.json"]);
    expect(files.filter((path) => /\.test\.|-fixture\./.test(path))).toEqual([]);
  });

  it("says which version it is, and of which commit, and knows no other", () => {
    const { version } = JSON.parse(readFileSync(join(root, "packages/cli/package.json"), "utf8"));
    const isClone = existsSync(join(root, ".git"));
    const commit = isClone ? execFileSync("git", ["-C", root, "rev-parse", "HEAD"], { encoding: "utf8" }) : "";
    expect(millrace("--version")).toBe(isClone ? `${version} (${commit.slice(0, 9)})\n` : `${version}\n`);
    expect(readdirSync(inUse("node_modules/@millrace")).toSorted()).toEqual(["api", "dashboard", "server", "worker"]);
  });
});

describe("Installed elsewhere", () => {
  it("millrace dev runs a handler", () => {
    mkdirSync(inUse("shout"));
    writeFileSync(inUse("shout/handler.ts"), "export default ({ text }: { text: string }) => text.toUpperCase();\n");
    expect(millrace("dev", "shout", "--input", '{"text":"hello"}')).toMatch(/HELLO/);
  }, 60_000);

  it("millrace serve is the service, and the client of @millrace/api speaks to it", async () => {
    const data = inUse("data");
    const words = ["serve", "--port", "0", "--data-dir", data];
    const env = { ...environment, MILLRACE_DEMO: "off" };
    const service = spawn(inUse("node_modules/.bin/millrace"), words, { cwd: inUse(), env, stdio: "ignore" });
    const ended = once(service, "exit");
    try {
      const url = await until(() => readdirSync(inUse()).includes("data") && textOf(join(data, "url")), 30_000);
      const key = readFileSync(join(data, "api-key"), "utf8").trim();
      writeFileSync(
        inUse("asks.mjs"),
        `import { createClient } from "@millrace/api/client";
         const { call } = createClient({ url: process.argv[2], key: process.argv[3] });
         console.log(JSON.stringify(await call("GET", "/v1/endpoints")));`,
      );
      expect(execFileSync(process.execPath, [inUse("asks.mjs"), url, key], { encoding: "utf8" })).toBe("[]\n");
      expect(await (await fetch(`${url}/docs/guide/jobs/`)).text()).toContain("<h1");
    } finally {
      service.kill("SIGTERM");
      expect(await ended).toEqual([0, null]);
    }
  }, 60_000);

  it("@millrace/worker tries a handler without a server", () => {
    const words = [inUse("shout/handler.ts"), "--test-input", '{"text":"tried"}'];
    const tried = execFileSync(inUse("node_modules/.bin/millrace-run-handler"), words, { encoding: "utf8" });
    expect(tried).toContain("TRIED");
  }, 60_000);
});

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim() || undefined;
  } catch {
    return undefined;
  }
}
