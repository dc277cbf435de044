import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort, root, startServer, type TestServer } from "../harness.js";
import { millrace, millraceHere, onTerminal, toServer } from "./millrace.js";

let server: TestServer;
let folder: string;
beforeAll(async () => {
  server = await startServer();
  folder = mkdtempSync(join(tmpdir(), "millrace-contexts-"));
});
afterAll(async () => {
  await server?.end();
  rmSync(folder, { recursive: true, force: true });
});

const run = (words: string[], env: Record<string, string> = {}) =>
  millraceHere(words, { env: { MILLRACE_CONFIG_DIR: join(folder, "config"), ...env }, folder });

it("A context keeps a server and a key, readable by its user alone, and is used from then on", async () => {
  const nothing = await run(["endpoint", "list"]);
  expect(nothing).toMatchObject({
    exit: 2,
    err: expect.stringMatching(/No server is known here.*millrace context add/),
  });
  const { url, key } = server;
  expect(await run(["context", "add", "rack", "--url", url])).toMatchObject({
    exit: 2,
    err: expect.stringMatching(/MILLRACE_API_KEY is not set/),
  });
  expect((await run(["context", "add", "rack", "--url", "nowhere"], { MILLRACE_API_KEY: key })).err).toMatch(
    /not a server's address/,
  );
  await run(["context", "add", "rack", "--url", url], { MILLRACE_API_KEY: key });
  const file = join(folder, "config/contexts.json");
  expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
  expect(await run(["endpoint", "list"])).toMatchObject({
    exit: 0,
    out: "",
    err: "None yet. millrace deploy FOLDER, or a container image: millrace deploy --name NAME --image IMAGE\n",
  });
  expect((await run(["context", "list"])).out).toMatch(/^\* +rack +http.* +\S{6}…$/m);
  expect((await run(["context", "list", "--json"])).out).not.toContain(key);
  await run(["context", "add", "gone", "--url", `http://127.0.0.1:${await freePort()}`], { MILLRACE_API_KEY: key });
  expect(await run(["endpoint", "list"])).toMatchObject({
    exit: 4,
    err: expect.stringMatching(/No server answers at .*ECONNREFUSED/),
  });
  expect(await run(["endpoint", "list", "--context", "rack"])).toMatchObject({ exit: 0 });
  expect(await run(["endpoint", "list", "--context", "none"])).toMatchObject({
    exit: 2,
    err: expect.stringContaining('no context "none"'),
  });
  await run(["context", "use", "rack"]);
  expect(await run(["endpoint", "list"], { MILLRACE_API_KEY: "wrong" })).toMatchObject({ exit: 3 });
  await run(["context", "remove", "rack"]);
  expect(Object.keys(JSON.parse(readFileSync(file, "utf8")).contexts)).toEqual(["gone"]);
});

it("A context takes the address from MILLRACE_URL unless --url gives it", async () => {
  const env = { MILLRACE_CONFIG_DIR: join(folder, "environment"), MILLRACE_API_KEY: server.key };
  expect(await run(["context", "add", "none"], env)).toMatchObject({
    exit: 2,
    err: expect.stringMatching(/^There is no address: neither --url nor MILLRACE_URL gives one\..*--url/),
  });
  const added = await run(["context", "add", "rack"], { ...env, MILLRACE_URL: server.url });
  expect(added).toMatchObject({ exit: 0 });
  expect(await run(["endpoint", "list", "--json"], { MILLRACE_CONFIG_DIR: env.MILLRACE_CONFIG_DIR })).toMatchObject({
    exit: 0,
    out: "[]\n",
  });
  await run(["context", "add", "other", "--url", "http://other.example"], { ...env, MILLRACE_URL: server.url });
  const listed = await run(["context", "list", "--json"], env);
  expect(JSON.parse(listed.out).map(({ url }: { url: string }) => url)).toEqual([server.url, "http://other.example"]);
});

it("In a server's folder, or below it, its own key is used", async () => {
  const below = join(folder, "clone/handlers/deep");
  mkdirSync(below, { recursive: true });
  mkdirSync(join(folder, "clone/.millrace"));
  writeFileSync(join(folder, "clone/.millrace/api-key"), `${server.key}\n`);
  const found = await millrace(["endpoint", "list", "--json"], {
    env: { MILLRACE_CONFIG_DIR: join(folder, "empty"), MILLRACE_PORT: String(server.port) },
    folder: below,
  });
  expect(found).toEqual({ exit: 0, out: "[]\n", err: "" });
});

it("Help teaches with examples and names the exit codes; colours go only to terminals that want them", async () => {
  const help = await run(["--help"]);
  expect(help).toMatchObject({ exit: 0, err: "" });
  for (const word of ["Examples:", "millrace run shout", "Exit codes:", "requests", "context"])
    expect(help.out).toContain(word);
  expect((await millrace(["--version"], {})).out).toMatch(/^\d+\.\d+\.\d+( \([0-9a-f]{9}\))?\n$/);
  const env = { ...toServer(server), MILLRACE_CONFIG_DIR: join(folder, "config") };
  const listed = ["context", "list"];
  expect((await onTerminal(listed, { env })).screen).toContain("\u001b[");
  expect((await onTerminal(listed, { env: { ...env, NO_COLOR: "1" } })).screen).not.toContain("\u001b[");
});

it("`npm run build` is enough for the command line", () => {
  execFileSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: "pipe" });
  expect(execFileSync("npx", ["--no", "millrace", "help"], { cwd: root, encoding: "utf8" })).toMatch(
    /^Usage: millrace /,
  );
});
