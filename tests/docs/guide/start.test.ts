import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { freePort, root, until } from "../../harness.js";
import { blocksOf } from "./blocks.js";

// docs/guide/index.md, docs/guide/gpus.md
it("`npm start`, as the pages say, runs a first job and serves the guide", async () => {
  for (const page of ["index", "gpus"]) {
    const commands = blocksOf(page).filter(({ words }) => words.test === "tests/docs/guide/start.test.ts");
    expect(commands.map(({ text }) => text)).toEqual(["npm start"]);
  }
  const dataDir = mkdtempSync(join(tmpdir(), "millrace-start-"));
  const port = await freePort();
  const env = { ...process.env, MILLRACE_DATA_DIR: dataDir, MILLRACE_PORT: String(port), MILLRACE_API_KEY: undefined };
  const child = spawn("npm", ["start"], { cwd: root, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const ended = new Promise<void>((done) => child.once("exit", () => done()));
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (log += text));
  try {
    await until(() => log.includes("COMPLETED"), 90_000);
    const key = readFileSync(join(dataDir, "api-key"), "utf8").trim();
    const url = `http://127.0.0.1:${port}`;
    const endpoints = await fetch(`${url}/v1/endpoints`, { headers: { authorization: `Bearer ${key}` } });
    expect(await endpoints.json()).toMatchObject([{ name: expect.stringContaining("hello") }]);
    expect(await (await fetch(`${url}/docs/guide/`)).text()).toContain("<h1");
  } finally {
    process.kill(-(child.pid as number), "SIGTERM");
    await ended;
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
});
