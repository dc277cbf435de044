import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../scripts/postgres.mjs";
import { call, makeEndpoint, root, startServer } from "../../harness.js";
import { blocksOf } from "./blocks.js";

let postgres: TestPostgres;
const folder = mkdtempSync(join(tmpdir(), "millrace-guide-"));
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(async () => {
  await postgres?.end();
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});

/** The commands of a page that this test runs. */
const commandsOf = (page: string): string[] =>
  blocksOf(page)
    .filter(({ words }) => words.test === "tests/docs/guide/postgres.test.ts")
    .map(({ text }) => text);

function makeDatabase(name: string): string {
  run(`createdb ${name}`, { MILLRACE_DATABASE_URL: "" });
  return postgres.url(name);
}

function run(command: string, env: Record<string, string>, cwd = folder): void {
  const { host, port, user } = {
    host: "127.0.0.1",
    port: String(postgres.port),
    user: new URL(postgres.url()).username,
  };
  const PATH = `${postgres.bin}:${process.env.PATH}`;
  const { status, stdout, stderr } = spawnSync("bash", ["-c", command], {
    cwd,
    env: { HOME: folder, PATH, PGHOST: host, PGPORT: port, PGUSER: user, ...env },
    encoding: "utf8",
  });
  expect({ status, stdout, stderr }, command).toMatchObject({ status: 0 });
}

/** A server's own list of endpoints, after `change` on it. */
async function namesOn(
  env: Record<string, string>,
  change?: (server: { url: string; key: string }) => Promise<unknown>,
) {
  const server = await startServer(env);
  try {
    await change?.(server);
    const { body } = await call(server, "GET", "/v1/endpoints");
    return body.map(({ name }: { name: string }) => name);
  } finally {
    if (env.MILLRACE_DATA_DIR) await server.stop();
    else await server.end();
  }
}

it("docs/guide/backup.md: a dump, restored into an empty database, has what was there", async () => {
  const [dump = "", restore = ""] = commandsOf("backup");
  const MILLRACE_SEAL_KEY = "ab".repeat(32);
  const before = makeDatabase("before_backup");
  const made = await namesOn({ MILLRACE_DATABASE_URL: before, MILLRACE_SEAL_KEY }, (server) =>
    makeEndpoint(server, "./examples/hello"),
  );
  run(dump, { MILLRACE_DATABASE_URL: before });
  const after = makeDatabase("after_backup");
  run(restore, { MILLRACE_DATABASE_URL: after });
  expect(await namesOn({ MILLRACE_DATABASE_URL: after, MILLRACE_SEAL_KEY })).toEqual(made);
});

it("docs/guide/deployment.md: a service moves from SQLite to PostgreSQL", async () => {
  const [move = ""] = commandsOf("deployment");
  const dataDir = join(folder, "sqlite");
  const made = await namesOn({ MILLRACE_DATA_DIR: dataDir }, (server) => makeEndpoint(server, "./examples/hello"));
  const target = makeDatabase("moved");
  const adapted = move
    .replace("/var/lib/millrace", dataDir)
    .replace("postgres://user:password@host:5432/millrace", target);
  expect(adapted).toContain(target);
  run(adapted, {}, root);
  expect(await namesOn({ MILLRACE_DATA_DIR: dataDir, MILLRACE_DATABASE_URL: target })).toEqual(made);
});
