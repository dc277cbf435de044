import { inspect } from "node:util";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../../scripts/postgres.mjs";
import { Refusal } from "../../errors.js";
import { expectOlderRows, olderRows } from "../contracts/older-rows.js";
import { asAdmin, makeDatabase, openAs } from "../contracts/postgres-fixture.js";
import { Scene } from "../contracts/scene.js";
import { Connections } from "./connection/connections.js";
import { isLost, worded } from "./connection/failures.js";
import { migrate } from "./migrate.js";
import { schemaVersion } from "./schema.js";

let server: TestPostgres;
beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
});
afterAll(() => server.end());

async function read(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

describe("Opening a database", () => {
  it("by several servers at once makes the schema once", async () => {
    const url = await makeDatabase(server, "fresh");
    const opened = await Promise.all(Array.from({ length: 6 }, (_, n) => openAs(`host-${n}`, url)));
    expect(await read(url, "SELECT version::int FROM schema")).toEqual([{ version: schemaVersion }]);
    expect(await read(url, "SELECT count(*)::int AS n FROM server")).toEqual([{ n: 6 }]);
    await Promise.all(opened.map((stores) => stores.close()));
  });

  it("of an older version keeps its endpoints and workers, each endpoint with its present version", async () => {
    const url = await makeDatabase(server, "older");
    const connections = new Connections(url, 1);
    await connections.lend((connection) => migrate(connection, 2));
    await connections.close();
    for (const statement of olderRows) await asAdmin(url, statement);
    const stores = await openAs("host", url);
    await expectOlderRows(stores);
    // Its old server number has become its host number, which its counts use.
    expect(stores.shared!.serverNo).toBe(1);
    await (await openAs("next", url)).close();
    expect(await read(url, "SELECT id FROM server ORDER BY no")).toEqual([{ id: "host" }, { id: "next" }]);
    await stores.close();
  });

  it("of a newer version says which program to start", async () => {
    const url = await makeDatabase(server, "newer");
    await (await openAs("host", url)).close();
    await asAdmin(url, `UPDATE schema SET version = ${schemaVersion + 1}`);
    await expect(openAs("host", url)).rejects.toThrow(/newer than this program's/);
  });

  it.each(["LATIN1", "SQL_ASCII"])(
    "that cannot store every text is refused with one sentence: %s",
    async (encoding) => {
      const name = `in_${encoding.toLowerCase()}`;
      await asAdmin(server.url(), `CREATE DATABASE ${name} TEMPLATE template0 ENCODING '${encoding}'`);
      await expect(openAs("host", server.url(name))).rejects.toThrow(
        new RegExp(`^The database's encoding is ${encoding} but must be UTF8: [^.]*\\.$`),
      );
      expect(await read(server.url(name), "SELECT 1 FROM pg_class WHERE relname = 'job'")).toEqual([]);
    },
  );

  it("whose schema cannot be made reports the cause, and is left unchanged", async () => {
    const url = await makeDatabase(server, "taken");
    await asAdmin(url, "CREATE TABLE job (other text)");
    await expect(openAs("host", url)).rejects.toThrow(/relation "job" already exists/);
    expect(await read(url, "SELECT count(*)::int AS n FROM pg_class WHERE relname IN ('endpoint', 'place')")).toEqual([
      { n: 0 },
    ]);
    await asAdmin(url, "DROP TABLE job");
    await (await openAs("host", url)).close();
  });

  it.each([
    ["an invalid port", (url: string) => url.replace(/:\d+\//, ":port/")],
    ["a port without a listener", (url: string) => url.replace(/:\d+\//, ":1/")],
    ["a database that does not exist", (url: string) => `${url}_not`],
    ["a host that does not exist", (url: string) => url.replace("127.0.0.1", "no-such-host.invalid")],
    ["a user that does not exist", (url: string) => url.replace("millrace:", "nobody:")],
  ])("never prints the password: %s", async (_, broken) => {
    const url = broken(server.url("fresh").replace("millrace@", "millrace:geheim-42@"));
    const error = await openAs("host", url).then(
      () => undefined,
      (found: unknown) => found,
    );
    expect(error).toBeInstanceOf(Error);
    expect(inspect(error, { depth: 8, showHidden: false })).not.toContain("geheim-42");
    expect(JSON.stringify(error)).not.toContain("geheim-42");
  });
});

describe("A database with unusual settings", () => {
  it("keeps its promises under another default isolation level", async () => {
    const url = await makeDatabase(server, "serializable");
    await asAdmin(url, "ALTER DATABASE serializable SET default_transaction_isolation = 'serializable'");
    const stores = await openAs("host", url);
    const scene = await Scene.open(async () => ({ stores, reopen: undefined, end: () => stores.close() }));
    const worker = await scene.worker("worker00000001");
    await scene.submitMany(60);
    const turns = await Promise.all(Array.from({ length: 20 }, () => scene.take(worker, 3)));
    expect(new Set(turns.flat().map(({ id }) => id)).size).toBe(60);
    expect(server.log()).not.toContain("could not serialize");
    await scene.end();
  });

  it("goes on when a newer server has changed its schema meanwhile", async () => {
    const url = await makeDatabase(server, "changed");
    const stores = await openAs("host", url);
    const scene = await Scene.open(async () => ({ stores, reopen: undefined, end: () => stores.close() }));
    const before = await stores.endpoints.all();
    await asAdmin(url, "ALTER TABLE endpoint ADD COLUMN more text; ALTER TABLE worker ADD COLUMN more text");
    expect(await stores.endpoints.all()).toEqual(before);
    expect(await scene.worker("worker00000001")).toBeGreaterThan(0);
    await scene.end();
  });
});

describe("A failure of the database", () => {
  const failure = (code: string) => Object.assign(new Error("it failed"), { code });

  it.each(["08006", "57P01", "57P03", "25P03", "53300", "ECONNRESET", "EPIPE"])("is temporary: %s", (code) => {
    expect(isLost(failure(code))).toBe(true);
    expect(worded(failure(code))).toMatchObject({ code: "UNAVAILABLE" });
  });

  it("has its own error if the disk is full, and is otherwise a failure", () => {
    expect(worded(failure("53100"))).toMatchObject({ code: "STORAGE_FULL" });
    for (const code of ["23505", "42601", "22021"]) {
      expect(isLost(failure(code))).toBe(false);
      expect(worded(failure(code))).not.toBeInstanceOf(Refusal);
    }
  });
});
