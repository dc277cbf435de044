import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { TestPostgres } from "../../scripts/postgres.mjs";
import type { Ending } from "../e2e/handlers.js";
import { root, startServer } from "../harness.js";

/** The exit code of `millrace-migrate`, and everything it printed. */
export interface Moved {
  readonly code: number | null;
  readonly text: string;
}

/** Runs the program as users do. */
export function runMove(...words: string[]): Promise<Moved> {
  const child = spawn(process.execPath, [join(root, "scripts/migrate.mjs"), ...words], {
    cwd: root,
    env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  child.stdout.on("data", (part) => (text += part));
  child.stderr.on("data", (part) => (text += part));
  return new Promise((done) => child.once("close", (code) => done({ code, text })));
}

export const move = (from: string, to: string) => runMove("--from", from, "--to", to);

let databases = 0;

/** Makes an empty database, and resolves with its address. */
export async function makeTarget(postgres: TestPostgres): Promise<string> {
  databases++;
  const name = `target_${databases}`;
  await ask(postgres.url(), `CREATE DATABASE ${name} TEMPLATE template0`);
  return postgres.url(name);
}

// biome-ignore lint/suspicious/noExplicitAny: the tests check the rows
export async function ask(url: string, text: string): Promise<any[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** The part of the SQLite interface that tests need. */
export interface Sqlite {
  exec(text: string): void;
  close(): void;
}

/** Changes a data directory's database by hand. */
export async function change(dataDir: string, text: string): Promise<void> {
  const { openDatabase } = await import(`${root}/packages/server/dist/stores/sqlite/driver.js`);
  const db: Sqlite = openDatabase(join(dataDir, "millrace.db"));
  db.exec(text);
  db.close();
}

/** Settings of a server that uses its SQLite, whichever database the other tests use. */
export const onSqlite = { MILLRACE_DATABASE_URL: "", MILLRACE_RATE_LIMITS: "off" };

/** The data directory of a server that was started once. */
export async function startOnce(): Promise<string> {
  const dataDir = mkdtempSync(join(tmpdir(), "millrace-move-"));
  const server = await startServer({ ...onSqlite, MILLRACE_DATA_DIR: dataDir });
  await server.stop();
  return dataDir;
}

/** A copy of a data directory that is removed with the test. */
export function copyOf(dataDir: string, test: Ending): string {
  const copy = mkdtempSync(join(tmpdir(), "millrace-move-"));
  test.onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
  cpSync(dataDir, copy, { recursive: true });
  return copy;
}
