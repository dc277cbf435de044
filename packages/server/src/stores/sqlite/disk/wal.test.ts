import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { limits } from "../../../limits/index.js";
import { openDatabase, openForWriting } from "../driver.js";
import { openSqlite } from "../open.js";
import { threaded } from "../writing/threaded.js";
import { Transactions } from "../writing/transactions.js";

describe("The log", () => {
  it("is checkpointed soon after a checkpoint that a reader held back", () => {
    const folder = mkdtempSync(join(tmpdir(), "millrace-log-"));
    const path = join(folder, "millrace.db");
    const db = openForWriting(path);
    db.exec("CREATE TABLE note (n INTEGER)");
    const gathered = { flush: () => {}, discard: () => {} };
    const verbs = { note: (n: number) => db.exec(`INSERT INTO note VALUES (${n})`) };
    const transactions = new Transactions(db, gathered, verbs, { release: () => false });
    const write = (count: number) => {
      transactions.run(Array.from({ length: count }, (_, n) => ({ verb: "note", args: [n] })));
      transactions.checkpoint();
    };
    const reader = openDatabase(path, { readOnly: true });
    try {
      write(1);
      reader.exec("BEGIN");
      reader.exec("SELECT n FROM note");
      const before = statSync(path).size;
      write(limits.checkpointWrites);
      expect(statSync(path).size).toBe(before);
      reader.exec("COMMIT");
      write(limits.checkpointAgainWrites);
      expect(statSync(path).size).toBeGreaterThan(before);
    } finally {
      reader.close();
      db.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("is checkpointed by a separate thread up to a reader's position, and its end by the writing thread", async () => {
    const folder = mkdtempSync(join(tmpdir(), "millrace-log-"));
    const path = join(folder, "millrace.db");
    await openSqlite({ path, onFatal: (error) => expect.unreachable(error.message) }).close();
    const { send, checkpoint, close } = threaded(path);
    const reader = openDatabase(path, { readOnly: true });
    const bytes = limits.checkpointBytes;
    const write = (sql: string) => send([{ verb: "statements", args: [[{ sql, parameters: [] }]] }], 0);
    const pagesOfFile = () => statSync(path).size;
    try {
      await write("CREATE TABLE note (body TEXT)");
      reader.exec("BEGIN");
      reader.exec("SELECT body FROM note");
      await write(`INSERT INTO note VALUES (zeroblob(${bytes}))`);
      expect([await checkpoint(), pagesOfFile() > bytes]).toEqual([false, false]);
      reader.exec("COMMIT");
      for (let n = 0; n < limits.checkpointWrites; n++) await write("UPDATE note SET body = body WHERE 0");
      expect(pagesOfFile() > bytes).toBe(false); // until then the writing thread leaves the log alone
      expect([await checkpoint(), pagesOfFile() > bytes]).toEqual([true, true]);
    } finally {
      reader.close();
      await close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
