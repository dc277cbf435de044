import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { makeEndpoint, startServer, type TestServer } from "../harness.js";
import { millrace, millraceHere, startOnTerminal, toServer } from "./millrace.js";

let server: TestServer;
let folder: string;
const undos: (() => unknown)[] = [];
const ending = { onTestFinished: (undo: () => unknown) => void undos.unshift(undo) };
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  const handler = "export default ({ fail }) => { if (fail) throw new Error('no'); return 1; };";
  await makeEndpoint(server, makeHandler(ending, handler), { name: "quick", workersMax: 1, idleTimeout: 60 });
});
afterAll(async () => {
  await server?.end();
  for (const undo of undos) await undo();
});
beforeEach((test) => {
  folder = mkdtempSync(join(tmpdir(), "millrace-watching-"));
  test.onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});
const run = (...words: string[]) => millraceHere(words, { env: toServer(server), folder });

it("millrace bench runs many jobs, and says how long they took", async () => {
  const { exit, out } = await run("bench", "quick", "--jobs", "20", "--at-once", "4");
  expect(exit).toBe(0);
  expect(out).toMatch(
    /^20 jobs, 0 failed, [\d.]+ a second\n {2}waiting +p50 .* · p95 .* · p99 .*\n {2}running .*\n {2}total .*\n$/,
  );
  const measured = await run("bench", "quick", "--jobs", "3", "--input", '{"fail":true}', "--json");
  expect(measured.exit).toBe(1);
  expect(JSON.parse(measured.out)).toMatchObject({ jobs: 3, failed: 3, waiting: { p50: expect.any(Number) } });
});

it("millrace top shows each endpoint's jobs and workers, once or on a screen", async (test) => {
  await run("run", "quick", "{}");
  expect((await run("top")).out).toMatch(
    /^endpoint +waiting +running +done +failed +GPUs +workers *\nquick +0 +0 +\d+ +\d+ +0 +1 idle/,
  );
  const screen = startOnTerminal(test, ["top"], { env: toServer(server), columns: 120 });
  await screen.shows("quick");
  screen.interrupt();
  expect(await screen.ended).toBe(130);
  expect(stripVTControlCharacters(screen.screen())).toMatch(
    /http:\/\/\S+ +0 waiting +0 running +0 GPUs in use +\d\d:\d\d:\d\d/,
  );
});

it("millrace top begins with what has most to do; what has as much is in the order of names", async (test) => {
  for (const [name, jobs] of [
    ["b-none", 0],
    ["a-none", 0],
    ["m-one", 1],
    ["z-two", 2],
  ] as const) {
    await makeEndpoint(server, makeHandler(test, "export default () => 1;"), { name, workersMax: 0 });
    test.onTestFinished(async () => void (await run("endpoint", "delete", name, "--yes")));
    for (let n = 0; n < jobs; n++) expect((await run("run", name, "--no-wait")).exit).toBe(0);
  }
  const order = ["z-two", "m-one", "a-none", "b-none", "quick"];
  const { out } = await run("top", "--once");
  expect(
    out
      .trimEnd()
      .split("\n")
      .slice(1)
      .map((line) => line.split(" ")[0]),
  ).toEqual(order);
  const rows = JSON.parse((await run("top", "--json")).out);
  expect(rows.map(({ name }: { name: string }) => name)).toEqual(order);
});

describe("millrace completion", () => {
  // completions are written by a library, to the standard output of its process
  const run = (...words: string[]) => millrace(words, { env: toServer(server), folder });
  const completed = async (...words: string[]) => (await run("complete", "--", ...words)).out;

  it("completes commands, options, and the names of endpoints", async () => {
    expect(await completed("re")).toMatch(/^requests\t.*\nreleases\t.*\nre/m);
    expect(await completed("run", "--no")).toMatch(/^--no-wait\t/);
    expect(await completed("run", "")).toMatch(/^quick\t/m);
    expect(await completed("endpoint", "")).toMatch(/^list\t[\s\S]*^restart\t/m);
    expect(await completed("webhook", "re")).toMatch(/^resume\t.*\nredeliver\t/);
    expect(await completed("webhook", "deliveries", "--st")).toMatch(/^--state\t/);
    const nobody = await millrace(["complete", "--", "run", ""], { env: { MILLRACE_CONFIG_DIR: folder }, folder });
    expect(nobody).toMatchObject({ exit: 0, err: "" });
  });

  it("prints a script for each shell, which bash can use", async () => {
    for (const shell of ["bash", "zsh", "fish"]) expect((await run("completion", shell)).out).toContain("millrace");
    expect((await run("completion", "--help")).out).toBe((await run("help", "completion")).out);
    expect(await run("completion", "tcsh")).toMatchObject({ exit: 2, out: "" });
    const script = join(folder, "script");
    writeFileSync(script, (await run("completion", "bash")).out);
    expect(execFileSync("bash", ["-c", `source ${script}; complete -p millrace`], { encoding: "utf8" })).toMatch(
      /^complete .*-F \S+ millrace\n/,
    );
  });
});

it("millrace backup copies a running server's data, and restore makes a server of it", async () => {
  const target = join(folder, "backup");
  const { id } = JSON.parse((await run("run", "quick", "{}", "--json")).out);
  const made = await run("backup", target, "--data", server.dataDir);
  expect(made).toMatchObject({ exit: 0, err: "" });
  for (const name of readdirSync(target)) expect((statSync(join(target, name)).mode & 0o777).toString(8)).toBe("600");
  expect((statSync(target).mode & 0o777).toString(8)).toBe("700");
  expect(readdirSync(target).sort()).toEqual(["api-key", "host", "millrace.db", "seal-key"]);
  expect(await run("backup", target, "--data", server.dataDir)).toMatchObject({
    exit: 2,
    err: expect.stringMatching(/is not empty/),
  });
  const restored = join(folder, "restored");
  expect((await run("restore", target, "--data", restored)).out).toContain(`MILLRACE_DATA_DIR=${restored} npm start`);
  const again = await startServer({ MILLRACE_DATA_DIR: restored });
  try {
    const env = { MILLRACE_URL: again.url, MILLRACE_API_KEY: server.key };
    const found = await millrace(["status", "quick", id, "--json"], { env, folder });
    expect(JSON.parse(found.out)).toMatchObject({ id, status: "COMPLETED", output: 1 });
  } finally {
    await again.end();
  }
  expect(await run("restore", folder, "--data", join(folder, "x"))).toMatchObject({
    exit: 2,
    err: expect.stringContaining("it is no backup"),
  });
  expect(await run("backup", join(folder, "y"))).toMatchObject({
    exit: 2,
    err: expect.stringContaining("There is no millrace.db"),
  });
});
