import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { expectOlderRows, olderRows } from "../contracts/older-rows.js";
import { completed, Scene, startAt } from "../contracts/scene.js";
import { newDirectory, onFatal, openMemory } from "../contracts/sqlite-fixture.js";
import { code } from "../tables/job-state.js";
import { lockDirectory } from "./disk/lock.js";
import { openDatabase } from "./driver.js";
import { migrate } from "./migrate.js";
import { openSqlite } from "./open.js";
import { schemaVersion } from "./schema.js";

describe("A sweep", () => {
  it("ends its batch with the job whose input, result or chunks reach its size limit", async () => {
    const scene = await Scene.open(openMemory);
    const worker = await scene.worker("worker00000001");
    const text = `"${"x".repeat(limits.sweepBytesMax)}"`;
    const ttlEndAt = startAt + 1_000;
    const finished = await scene.submit({ ttlEndAt });
    const streamed = await scene.submit({ ttlEndAt });
    await scene.take(worker, 2);
    await scene.settle(finished, worker, completed(text));
    await scene.append(streamed, worker, text);
    await scene.settle(streamed, worker);
    await scene.submit({ body: text, ttlEndAt });
    await scene.submit({ ttlEndAt });
    scene.now = ttlEndAt;
    const batches = [];
    for (let n = 0; n < 4; n++) batches.push(await scene.stores.jobs.sweep({ now: scene.now, limit: 10 }));
    expect(batches.map(({ deleted, more }) => [deleted, more])).toEqual([
      [1, true],
      [1, true],
      [1, true],
      [1, false],
    ]);
    await scene.end();
  });
});

describe("A database file", () => {
  let directory: string;
  let path: string;
  beforeEach(() => {
    directory = newDirectory();
    path = join(directory, "millrace.db");
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it("of an older version keeps its endpoints and workers, each endpoint with its present version", async () => {
    const older = openDatabase(path);
    migrate(older, 3);
    for (const statement of olderRows) older.exec(statement);
    older.close();
    const stores = openSqlite({ path, onFatal });
    await expectOlderRows(stores);
    await stores.close();
  });

  it("of a newer version is refused with one sentence, and left as it is", async () => {
    await openSqlite({ path, onFatal }).close();
    const newer = openDatabase(path);
    newer.exec(`PRAGMA user_version = ${schemaVersion + 1}`);
    newer.close();
    expect(() => openSqlite({ path, onFatal })).toThrow(
      new RegExp(`^The database is of version ${schemaVersion + 1}, newer than [^.]*${schemaVersion}: [^.]*\\.$`, "s"),
    );
    const after = openDatabase(path);
    expect(after.prepare("PRAGMA user_version").get().user_version).toBe(schemaVersion + 1);
    after.close();
  });

  it("syncs every commit to the disk", async () => {
    const stores = openSqlite({ path, onFatal });
    const other = openDatabase(path, { readOnly: true });
    expect(other.prepare("PRAGMA journal_mode").get().journal_mode).toBe("wal");
    other.close();
    await stores.close();
  });

  it.each([
    ["a final job without its end", `status = ${code.COMPLETED}`],
    ["an end without a final state", "finished_at = 5"],
    ["a running job that no worker holds", `status = ${code.IN_PROGRESS}, taken_at = 1, deadline_at = 2`],
    ["an unknown state", "status = 6, finished_at = 5"],
  ])("cannot store %s", async (_, change) => {
    await openSqlite({ path, onFatal }).close();
    const db = openDatabase(path);
    db.exec(`INSERT INTO job (endpoint_no, id, place, status, low_priority, created_at, queued_at, ttl_end_at, expires_at,
      execution_timeout_ms, retention_ms, has_webhook, keyed) VALUES (1, 'a', 1, ${code.IN_QUEUE}, 0, 1, 1, 9, 9, 5, 5, 0, 0)`);
    expect(() => db.exec(`UPDATE job SET ${change}`)).toThrow(/CHECK/);
    db.close();
  });
});

describe("The lock of a data directory", () => {
  it("has one holder at a time, and is free again after its release", () => {
    const directory = newDirectory();
    const path = join(directory, "lock");
    const first = lockDirectory(path);
    expect(first).toBeDefined();
    expect(lockDirectory(path)).toBeUndefined();
    first?.release();
    const second = lockDirectory(path);
    expect(second).toBeDefined();
    second?.release();
    rmSync(directory, { recursive: true });
  });
});
