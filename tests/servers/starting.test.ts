import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../scripts/postgres.mjs";
import { call, freePort, startServer, type TestServer, until } from "../harness.js";
import { ask, attemptServer, makeDatabase, sentencesOf, shared } from "./cluster.js";

let postgres: TestPostgres;
let databases = 0;
/** A server and its database: servers that start there are refused and do not affect it. */
let first: TestServer;
let url: string;
beforeAll(async () => {
  postgres = await startPostgres();
  url = await emptyDatabase();
  first = await startServer({ ...shared, MILLRACE_DATABASE_URL: url });
});
afterAll(async () => {
  await first?.end();
  await postgres?.end();
});

const emptyDatabase = () => makeDatabase(postgres, `empty_${++databases}`);

/** Expects a server to be refused: it prints one sentence and exits with code 1. */
async function expectRefused(env: Record<string, string>, words: RegExp, command?: readonly string[]): Promise<void> {
  const attempt = await attemptServer(env, command);
  try {
    const code = await attempt.ended;
    expect({ code, sentences: sentencesOf(attempt.log()) }).toEqual({
      code: 1,
      sentences: [expect.stringMatching(words)],
    });
  } finally {
    await attempt.end();
  }
}

describe.concurrent("servers that start", { timeout: 120_000 }, () => {
  it("at once on an empty database are all ready: one has migrated, the others waited", async (test) => {
    for (let round = 0; round < 2; round++) {
      const url = await emptyDatabase();
      const env = { ...shared, MILLRACE_DATABASE_URL: url, MILLRACE_API_KEY: "" };
      const servers = await Promise.all([1, 2].map(() => startServer(env)));
      test.onTestFinished(() => Promise.all(servers.map((server) => server.end())).then(() => {}));
      expect(await ask(url, "SELECT version::int FROM schema")).toEqual([{ version: expect.any(Number) }]);
      const kept = servers.map(({ dataDir }) => join(dataDir, "api-key")).filter((file) => existsSync(file));
      expect(kept).toHaveLength(1);
      const key = readFileSync(kept[0] as string, "utf8").trim();
      expect(key).toMatch(/^mr_[\w-]{20,}$/);
      // Logs have more readers than operators, so they name the key's file, on the server that has it, but hold no key.
      const logs = () => servers.map((server) => server.log());
      const named = () => logs().filter((log) => /api-key/.test(log));
      await until(() => named().length > 0); // its last lines may come after its first reply
      expect(logs().join("")).not.toContain(key);
      expect(named().map((log) => kept.some((file) => log.includes(file)))).toEqual([true]);
      expect(await ask(url, "SELECT is_bootstrap::int AS is FROM api_key")).toEqual([{ is: 1 }]);
      for (const { url } of servers) expect((await call({ url, key }, "GET", "/v1/endpoints")).status).toBe(200);
    }
  });

  it("with a different seal key are refused with one sentence", async () => {
    const env = { MILLRACE_DATABASE_URL: url, MILLRACE_SEAL_KEY: "0".repeat(64) };
    await Promise.all([
      expectRefused(env, /^MILLRACE_SEAL_KEY is not the key .+\.$/),
      expectRefused({ ...env, MILLRACE_SEAL_KEY: "" }, /^The seal key is missing: set MILLRACE_SEAL_KEY .+\.$/),
    ]);
    const others = await ask(
      url,
      "SELECT no FROM server WHERE no > 1 AND seen_at > 0 UNION SELECT no FROM host WHERE no > 1",
    );
    expect(others).toEqual([]); // no scaler may give them workers
    expect((await call(first, "GET", "/v1/endpoints")).status).toBe(200);
  });

  it("on a copy of another's data directory are refused with one sentence, and the other continues", async (test) => {
    const copy = mkdtempSync(join(tmpdir(), "millrace-copy-"));
    test.onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
    copyFileSync(join(first.dataDir, "host"), join(copy, "host"));
    const env = { ...shared, MILLRACE_DATABASE_URL: url, MILLRACE_DATA_DIR: copy };
    await expectRefused(env, /^Another server with the identity of .+\.$/);
    expect((await call(first, "GET", "/v1/endpoints")).status).toBe(200);
  });

  it("before their database wait for it", async (test) => {
    const late = await startPostgres();
    test.onTestFinished(() => late.end());
    await late.stop();
    const [server] = await Promise.all([startServer({ ...shared, MILLRACE_DATABASE_URL: late.url() }), late.start()]);
    test.onTestFinished(() => server.end());
    expect((await call(server, "GET", "/v1/endpoints")).status).toBe(200);
  });

  it("give up on a database that never comes, with one sentence", async () => {
    const url = `postgres://millrace@127.0.0.1:${await freePort()}/postgres`;
    await expectRefused({ MILLRACE_DATABASE_URL: url }, /^The database cannot be reached \(ECONNREFUSED\): .+\.$/);
  });

  it("on a database server without that database are refused with one sentence", async () => {
    await expectRefused(
      { MILLRACE_DATABASE_URL: postgres.url("nobodys") },
      /^The database server does not let us in \(database "nobodys" does not exist\): check MILLRACE_DATABASE_URL\.$/,
    );
  });

  it("with a clock that is off by seconds are refused with one sentence", async () => {
    const url = await emptyDatabase();
    const env = { MILLRACE_DATABASE_URL: url, DONT_FAKE_MONOTONIC: "1" };
    const ahead = /^This machine's clock is \d\.\d s ahead of the database's: .+\.$/;
    await expectRefused(env, ahead, ["faketime", "-f", "+5s"]);
    const behind = /^This machine's clock is \d\.\d s behind the database's: .+\.$/;
    await expectRefused(env, behind, ["faketime", "-f", "-5s"]);
    const seen = "SELECT no FROM host WHERE seen_at > 0 UNION SELECT no FROM server WHERE seen_at > 0";
    expect(await ask(url, seen)).toEqual([]); // no scaler may give them workers
  });
});

describe("a server that starts again on its database", () => {
  it("at once after a kill is not delayed by its old locks, and forgets hosts that were gone for a day", async () => {
    await first.kill();
    await ask(url, "INSERT INTO host (id, seen_at) VALUES ('old', 1)");
    await first.restart(); // at once: its locks ended with its process
    await until(async () => (await ask(url, "SELECT 1 FROM host WHERE id = 'old'")).length === 0);
    expect(await ask(url, "SELECT 1 FROM host WHERE seen_at > 0")).toHaveLength(1);
  });

  it("after a newer version has migrated it is refused with one sentence", async () => {
    await first.stop();
    await ask(url, "UPDATE schema SET version = 4711");
    await expectRefused({ MILLRACE_DATABASE_URL: url }, /^The database is of version 4711, newer than .+\.$/);
  });
});

it("a server that was killed while it started leaves nothing that delays the next", async (test) => {
  const url = await emptyDatabase();
  const attempt = await attemptServer({ MILLRACE_DATABASE_URL: url });
  test.onTestFinished(() => attempt.end());
  await until(async () => (await ask(url, "SELECT 1 FROM pg_tables WHERE tablename = 'schema'")).length > 0);
  attempt.child.kill("SIGKILL");
  const next = await startServer({ ...shared, MILLRACE_DATABASE_URL: url });
  test.onTestFinished(() => next.end());
  expect((await call(next, "GET", "/v1/endpoints")).status).toBe(200);
});
