import { once } from "node:events";
import { rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../scripts/postgres.mjs";
import { type Ending, makeFolder } from "../e2e/handlers.js";
import { call, startServer } from "../harness.js";
import { ask, change, copyOf, makeTarget, move, onSqlite, runMove, startOnce } from "./move.js";

let postgres: TestPostgres;
let started: string;
beforeAll(async () => {
  postgres = await startPostgres();
  started = await startOnce();
});
afterAll(async () => {
  if (started !== undefined) rmSync(started, { recursive: true, force: true });
  await postgres?.end();
});
const makeDataDir = (test: Ending) => copyOf(started, test);

const oneWorker = `INSERT INTO worker (no, id, endpoint_no, version, host_no, wanted, created_at, worker_url)
  VALUES (7, 'w', 1, 1, 1, 'stopped', 1, 'http://w')`;
const usersIn = async (url: string) => Number((await ask(url, `SELECT count(*) AS n FROM "user"`))[0]?.n);

/** Expects a refusal: one sentence, no stack, and exit code 1. */
async function expectRefused(from: string, to: string, words: RegExp): Promise<void> {
  const { code, text } = await move(from, to);
  expect(text).toMatch(words);
  expect(text).not.toMatch(/^\s+at .+:\d+/m);
  expect(code).toBe(1);
}

/** A database server that refuses every client; our test databases trust everyone. */
async function startRefusing(test: Ending, code: string, message: string): Promise<number> {
  const server = createServer((socket) => {
    const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`);
    const head = Buffer.alloc(5);
    head.write("E");
    head.writeInt32BE(fields.length + 4, 1);
    socket.on("error", () => {});
    socket.once("data", () => socket.end(Buffer.concat([head, fields])));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  test.onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

describe("a source that cannot be moved", () => {
  it("is a directory without a database", async (test) => {
    await expectRefused(makeFolder(test), postgres.url(), /no SQLite database/);
  });

  it("is a directory that a running server uses, which continues to serve", async (test) => {
    const server = await startServer(onSqlite);
    test.onTestFinished(() => server.end());
    await expectRefused(server.dataDir, await makeTarget(postgres), /A server uses .* stop it/);
    expect((await call(server, "GET", "/v1/endpoints")).status).toBe(200);
  });

  it.for([
    [1, /older.*first start and stop a server of this version/],
    [99, /newer.*use the newer program/],
  ] as const)("is a database of version %i", async ([version, words], test) => {
    const dataDir = makeDataDir(test);
    await change(dataDir, `PRAGMA user_version = ${version}`);
    await expectRefused(dataDir, await makeTarget(postgres), words);
  });

  it("is a database with a column that the program does not know", async (test) => {
    const dataDir = makeDataDir(test);
    const target = await makeTarget(postgres);
    await change(dataDir, "ALTER TABLE worker ADD COLUMN mood TEXT");
    await expectRefused(dataDir, target, /table worker differs in its column mood/);
    expect(await usersIn(target)).toBe(0);
  });

  it.for([
    ["a NUL", "char(97, 0, 98)", /worker_url in the row no 7 of the table worker holds a NUL/],
    ["bytes that are not UTF-8", "CAST(x'c328' AS TEXT)", /worker_url in the row no 7 .* not UTF-8/],
  ] as const)("is %s in a text: nothing is moved, until that is fixed", async ([, sql, words], test) => {
    const dataDir = makeDataDir(test);
    const target = await makeTarget(postgres);
    await change(dataDir, `${oneWorker}; UPDATE worker SET worker_url = ${sql}`);
    await expectRefused(dataDir, target, words);
    expect(await usersIn(target)).toBe(0);
    await change(dataDir, "UPDATE worker SET worker_url = NULL");
    expect(await move(dataDir, target)).toMatchObject({ code: 0 });
    expect(await usersIn(target)).toBe(1);
  });
});

describe("a target that is refused", () => {
  it("is a database that already has rows", async (test) => {
    const dataDir = makeDataDir(test);
    const target = await makeTarget(postgres);
    expect(await move(dataDir, target)).toMatchObject({ code: 0 });
    await expectRefused(dataDir, target, /not empty/);
    expect(await usersIn(target)).toBe(1);
  });

  it("is a database of another program, which stays unchanged", async (test) => {
    const target = await makeTarget(postgres);
    await ask(target, "CREATE TABLE cattle (name text)");
    await expectRefused(makeDataDir(test), target, /another program \(cattle\)/);
    expect(await ask(target, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).toHaveLength(1);
  });

  it("is an address that does not answer, and its password is not shown", async (test) => {
    const { code, text } = await move(makeDataDir(test), "postgres://me:s3cret@127.0.0.1:1/none");
    expect(code).toBe(1);
    expect(text).toMatch(/cannot be reached \(ECONNREFUSED\)/);
    expect(text).not.toContain("s3cret");
  });

  it.for([
    [
      "28P01",
      'password authentication failed for user "me"',
      /The database refused the password: check the one in --to/,
    ],
    ["28000", 'role "me" is not permitted to log in', /refused the user \(role "me" is not permitted to log in\)/],
    ["3D000", 'database "none" does not exist', /has no such database \(database "none" does not exist\)/],
  ] as const)("is a database that refuses with %s, which is reported", async ([code, message, words], test) => {
    const port = await startRefusing(test, code, message);
    const { code: exit, text } = await move(makeDataDir(test), `postgres://me:s3cret@127.0.0.1:${port}/none`);
    expect(exit).toBe(1);
    expect(text).toMatch(words);
    expect(text).not.toMatch(/s3cret|cannot be reached/);
  });
});

describe("wrong options", () => {
  it.each([
    [["--form", "x"], /Unknown option --form/],
    [["--from"], /--from needs a value/],
    [["--from", "x"], /--to is needed/],
    [["--from", "x", "--to", "mysql://x"], /--to must be a postgres:/],
  ])("%j end with exit code 2", async (words, sentence) => {
    const { code, text } = await runMove(...words);
    expect(text).toMatch(sentence);
    expect(code).toBe(2);
  });

  it("do not include --help", async () => {
    const { code, text } = await runMove("--help");
    expect(text).toMatch(/Usage:.*--from DATA_DIR --to postgres:/);
    expect(code).toBe(0);
  });
});

describe("a note with a NUL", () => {
  it("loses that, as on a server with PostgreSQL", async (test) => {
    const dataDir = makeDataDir(test);
    const target = await makeTarget(postgres);
    await change(dataDir, "INSERT INTO job_event VALUES (1, 1, 1, 'timeOut', NULL, char(97, 0, 98))");
    expect(await move(dataDir, target)).toMatchObject({ code: 0 });
    expect(await ask(target, "SELECT note FROM job_event")).toEqual([{ note: "ab" }]);
  });
});
