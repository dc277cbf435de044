import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Refusal } from "../../../errors.js";
import { limits } from "../../../limits/index.js";
import { type Database, openForWriting } from "../driver.js";
import { Transactions, type Write } from "./transactions.js";
import { GroupWriter } from "./writer.js";
import { codeOf } from "./writer-fixture.js";

/** A writer over a database that records its statements, with the verbs `note` and `fail`. */
function open(parts: { room?: boolean; release?: () => boolean; onCommit?: () => void } = {}) {
  const told: string[] = [];
  const fatal: Error[] = [];
  const db: Database = {
    prepare: () => {
      throw new Error("no statement is prepared here");
    },
    exec(sql) {
      told.push(sql);
      if (sql === "COMMIT") parts.onCommit?.();
    },
    close: () => {},
  };
  const gathered = { flush: () => void told.push("flush"), discard: () => void told.push("discard") };
  const verbs = {
    note: (name: string) => {
      told.push(name);
      return `${name}!`;
    },
    fail: () => {
      throw new Error("a bad row");
    },
  };
  const transactions = new Transactions(db, gathered, verbs, { release: parts.release ?? (() => false) });
  const writer = new GroupWriter({
    send: (group) => transactions.run(group),
    onFatal: (error) => void fatal.push(error),
    reserve: { hasRoom: () => parts.room ?? true },
  });
  return { writer, told, fatal };
}
describe("The writer", () => {
  it("runs the queued calls in one transaction, with the counts last, and answers after the commit", async () => {
    const { writer, told } = open();
    const answers = [writer.word("note", ["a"]), writer.call("note", ["b"])].map((promise) =>
      promise.then((answer) => told.push(`answered ${answer}`)),
    );
    await Promise.all(answers);
    expect(told).toEqual(["BEGIN IMMEDIATE", "a", "b", "flush", "COMMIT", "answered a!", "answered b!"]);
  });

  it("runs a group that fails again call by call, so that only the bad call fails", async () => {
    const { writer, told } = open();
    const outcomes = await Promise.all([
      codeOf(writer.call("note", ["a"])),
      codeOf(writer.call("fail", [])),
      codeOf(writer.call("note", ["b"])),
    ]);
    expect(outcomes).toEqual(["done", "Error: a bad row", "done"]);
    const commits = told.filter((line) => line === "COMMIT").length;
    const rollbacks = told.filter((line) => line === "ROLLBACK").length;
    expect([commits, rollbacks, told.filter((line) => line === "discard").length]).toEqual([2, 2, 2]);
  });

  it("fails a whole group if another connection holds the lock, and continues when the lock is free", async () => {
    const folder = mkdtempSync(join(tmpdir(), "millrace-lock-"));
    const [ours, other] = [1, 2].map(() => openForWriting(join(folder, "db"))) as [Database, Database];
    ours.exec("CREATE TABLE note (name TEXT); PRAGMA busy_timeout = 0");
    let begun = 0;
    const db: Database = {
      prepare: (sql) => ours.prepare(sql),
      exec(sql) {
        if (sql.startsWith("BEGIN")) begun++;
        ours.exec(sql);
      },
      close: () => ours.close(),
    };
    const verbs = { note: (name: string) => void ours.prepare("INSERT INTO note VALUES (?)").run(name) };
    const gathered = { flush: () => {}, discard: () => {} };
    const transactions = new Transactions(db, gathered, verbs, { release: () => false });
    const send = (group: readonly Write[]) => transactions.run(group);
    const onFatal = (error: Error) => expect.unreachable(error.message);
    const writer = new GroupWriter({ send, onFatal, reserve: { hasRoom: () => true } });
    const writeMany = async () =>
      new Set(
        await Promise.all(Array.from({ length: limits.groupCallsMax }, () => codeOf(writer.call("note", ["a"])))),
      );
    other.exec("BEGIN IMMEDIATE");
    expect([await writeMany(), begun]).toEqual([new Set(["UNAVAILABLE"]), 1]);
    other.exec("ROLLBACK");
    expect([await writeMany(), begun]).toEqual([new Set(["done"]), 2]);
    expect(ours.prepare("SELECT count(*) AS n FROM note").get().n).toBe(limits.groupCallsMax);
    for (const each of [ours, other]) each.close();
    rmSync(folder, { recursive: true });
  });

  it("refuses clients when the queue of calls is full, and workers' reports last", async () => {
    const { writer } = open();
    const queued = Array.from({ length: limits.queuedCallsMax }, () => codeOf(writer.call("note", ["x"])));
    const refusal = await writer.call("note", ["late"]).catch((error: Refusal) => error);
    expect(refusal).toMatchObject({ code: "UNAVAILABLE", retryAfterSeconds: 1 });
    const word = codeOf(writer.word("note", ["word"]));
    expect(new Set(await Promise.all([...queued, word]))).toEqual(new Set(["done"]));
    expect(await codeOf(writer.call("note", ["again"]))).toBe("done");
  });

  it("bounds the queue by bytes too, and frees them again", async () => {
    const { writer } = open();
    const large = codeOf(writer.call("note", ["x"], { bytes: limits.queuedBytesMax }));
    expect(await codeOf(writer.call("note", ["y"], { bytes: 1 }))).toBe("UNAVAILABLE");
    expect(await large).toBe("done");
    expect(await codeOf(writer.call("note", ["y"], { bytes: 1 }))).toBe("done");
  });

  it("does not refuse clients for the bytes of workers' results", async () => {
    const { writer } = open();
    const large = codeOf(writer.word("note", ["x"], { bytes: limits.queuedBytesMax + 1 }));
    expect(await codeOf(writer.call("note", ["y"], { bytes: 1 }))).toBe("done");
    expect(await large).toBe("done");
  });

  it("bounds a group, and gives a large call its own group", async () => {
    const { writer, told } = open();
    const calls = Array.from({ length: limits.groupCallsMax + 1 }, () => writer.call("note", ["x"]));
    const large = writer.call("note", ["large"], { bytes: limits.groupBytesMax + 1 });
    await Promise.all([...calls, large]);
    expect(told.filter((line) => line === "COMMIT")).toHaveLength(3);
  });

  it("runs workers' reports before submissions that came earlier", async () => {
    const { writer, told } = open();
    const calls = Array.from({ length: 3 * limits.groupCallsMax }, () => writer.call("note", ["submission"]));
    const word = writer.word("note", ["word"]);
    await Promise.all([...calls, word]);
    const notes = told.filter((line) => line === "submission" || line === "word");
    expect(notes.indexOf("word")).toBeLessThan(notes.length - 1);
  });

  it("refuses submissions while the disk is nearly full, and still writes workers' reports", async () => {
    const { writer } = open({ room: false });
    expect(await codeOf(writer.admit("note", ["x"], { bytes: 1 }))).toBe("STORAGE_FULL");
    expect(await codeOf(writer.word("note", ["x"], { bytes: 1 }))).toBe("done");
  });

  it("releases the reserve for calls in flight when the disk is full, but only once", async () => {
    let reserves = 1;
    let isFull = true;
    const release = () => {
      isFull = reserves === 0;
      return reserves-- > 0;
    };
    const onCommit = () => {
      if (isFull) throw new Error("database or disk is full");
    };
    const { writer } = open({ release, onCommit });
    expect(await codeOf(writer.word("note", ["a"]))).toBe("done");
    isFull = true;
    expect(await codeOf(writer.word("note", ["b"]))).toBe("STORAGE_FULL");
  });

  it("reports a full disk if the database does, and continues when there is room", async () => {
    let full = true;
    const onCommit = () => {
      if (full) throw new Error("database or disk is full");
    };
    const { writer, fatal } = open({ onCommit });
    expect(await codeOf(writer.call("note", ["x"]))).toBe("STORAGE_FULL");
    full = false;
    expect([await codeOf(writer.call("note", ["x"])), fatal.length]).toEqual(["done", 0]);
  });

  it("never reports success for writes that a failed sync may have lost, and never retries the sync", async () => {
    const onCommit = () => {
      throw new Error("disk I/O error");
    };
    const { writer, told, fatal } = open({ onCommit });
    const outcomes = await Promise.all([codeOf(writer.call("note", ["a"])), codeOf(writer.word("note", ["b"]))]);
    expect(outcomes).toEqual(["UNAVAILABLE", "UNAVAILABLE"]);
    expect(told.filter((line) => line === "COMMIT")).toHaveLength(1);
    expect(fatal.map(({ message }) => message)).toEqual(["disk I/O error"]);
    expect(await codeOf(writer.word("note", ["c"]))).toBe("UNAVAILABLE");
  });

  it("writes queued calls when it is closed, then accepts no more", async () => {
    const { writer, told } = open();
    const last = writer.word("note", ["last"]);
    await writer.close();
    expect([await last, told.at(-1)]).toEqual(["last!", "COMMIT"]);
    expect(await codeOf(writer.word("note", ["late"]))).toBe("UNAVAILABLE");
  });
});
