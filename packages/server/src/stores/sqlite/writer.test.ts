import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { type Database, openDatabase, openForWriting } from "./driver.js";
import { openSqlite } from "./open.js";
import { TextCutter, type TextPiece } from "./stored-texts.js";
import { threaded } from "./threaded.js";
import { Transactions, type Write } from "./transactions.js";
import { GroupWriter } from "./writer.js";

/** A writer over a database that notes what it is told, and the verbs `note` and `fail`. */
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
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error) => (error instanceof Refusal ? error.code : String(error)),
  );

describe("The writer", () => {
  it("runs what has gathered in one transaction, counts last, and answers after the commit", async () => {
    const { writer, told } = open();
    const answers = [writer.word("note", ["a"]), writer.call("note", ["b"])].map((promise) =>
      promise.then((answer) => told.push(`answered ${answer}`)),
    );
    await Promise.all(answers);
    expect(told).toEqual(["BEGIN IMMEDIATE", "a", "b", "flush", "COMMIT", "answered a!", "answered b!"]);
  });

  it("runs a group that fails again call by call, so that the bad one fails alone", async () => {
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

  it("bounds a group, and lets a large call travel alone", async () => {
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

/** A writer whose groups are on disk when the test says so. */
function openSlow(checkpoint?: () => Promise<boolean>) {
  const groups: { names: string[]; land: () => void }[] = [];
  const fatal: Error[] = [];
  const writer = new GroupWriter({
    send: (group) =>
      new Promise((land) => {
        const names = group.map(({ args }) => String(args[0]));
        groups.push({ names, land: () => land(group.map(() => ({ ok: true, value: undefined }))) });
      }),
    ...(checkpoint ? { checkpoint } : {}),
    onFatal: (error) => void fatal.push(error),
    reserve: { hasRoom: () => true },
  });
  const small = (name: string, endpointNo = 1) =>
    void writer.call("note", [name], { bytes: 1, endpointNo }).catch(() => {});
  const large = (name: string, endpointNo = 2, bytes: number = limits.groupBytesMax) =>
    void writer.call("note", [name], { bytes, endpointNo }).catch(() => {});
  /** What was sent, once the writer has had its turns. */
  const sent = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    return groups.map(({ names }) => names.join(" "));
  };
  return { writer, groups, fatal, small, large, sent, land: (at: number) => groups[at]?.land() };
}

describe("Large calls", () => {
  it("go one at a time, in a group of their own, after small ones", async () => {
    const { small, large, sent, land } = openSlow();
    large("A");
    large("B");
    small("a");
    expect(await sent()).toEqual(["a", "A"]);
    small("b");
    land(0);
    expect(await sent()).toEqual(["a", "A", "b"]);
    small("c");
    land(2);
    expect(await sent()).toEqual(["a", "A", "b", "c"]);
    land(1);
    expect(await sent()).toEqual(["a", "A", "b", "c", "B"]);
  });

  it("let one group of small calls go first, and then go", async () => {
    const { small, large, sent, land } = openSlow();
    large("A");
    expect(await sent()).toEqual(["A"]);
    large("B");
    small("a");
    land(0);
    expect(await sent()).toEqual(["A", "a", "B"]);
    small("b");
    land(1);
    expect(await sent()).toEqual(["A", "a", "B", "b"]);
    for (let n = 0; n < 3; n++) {
      large(`L${n}`);
      land(2 + 2 * n);
      small(`s${n}`);
      land(3 + 2 * n);
      await sent();
    }
    expect(await sent()).toEqual(["A", "a", "B", "b", "s0", "L0", "s1", "L1", "s2", "L2"]);
  });

  it("share a group up to its bytes", async () => {
    const { large, sent, land } = openSlow();
    for (const name of ["A", "B", "C"]) large(name, 2, limits.groupBytesMax / 2);
    expect(await sent()).toEqual(["A B"]);
    land(0);
    expect(await sent()).toEqual(["A B", "C"]);
  });

  it("keep their order among the calls of their endpoint: a take finds the job submitted before it", async () => {
    const { writer, small, large, sent, land } = openSlow();
    small("before", 2);
    large("A", 2);
    small("behind", 2);
    void writer.follow("note", ["take of 2"], 2);
    void writer.follow("note", ["take of 1"], 1);
    expect(await sent()).toEqual(["before take of 1", "A"]);
    land(0);
    expect(await sent()).toEqual(["before take of 1", "A", "behind take of 2"]);
  });

  it("of workers go before those of clients, which have their share of each group", async () => {
    const { writer, large, sent, land } = openSlow();
    for (const name of ["a", "b"]) large(name, 1, limits.groupBytesMax / 2);
    const word = (name: string) => void writer.word("note", [name], { bytes: limits.groupBytesMax / 2, endpointNo: 2 });
    for (const name of ["A", "B"]) word(name);
    expect(await sent()).toEqual(["A a"]);
    land(0);
    expect(await sent()).toEqual(["A a", "B b"]);
  });

  it("of workers and clients together keep to the bound of a group", async () => {
    const { writer, large, sent } = openSlow();
    for (const name of ["a", "b"]) large(name, 1, limits.groupBytesMax / 2);
    void writer.word("note", ["A"], { bytes: limits.groupBytesMax / 2, endpointNo: 2 });
    expect(await sent()).toEqual(["A a"]);
  });

  it("of several endpoints take turns", async () => {
    const { large, sent, land } = openSlow();
    const bytes = limits.groupBytesMax / 2;
    for (const name of ["a1", "a2", "a3", "a4", "a5"]) large(name, 1, bytes);
    large("b1", 2, bytes);
    expect(await sent()).toEqual(["a1 b1"]);
    for (const name of ["b2", "b3"]) large(name, 2, bytes);
    land(0);
    expect(await sent()).toEqual(["a1 b1", "a2 b2"]);
    large("c1", 3, bytes);
    land(1);
    expect(await sent()).toEqual(["a1 b1", "a2 b2", "c1 a3"]);
    land(2);
    expect((await sent()).at(-1)).toBe("b3 a4");
  });

  it("wait during the checkpoint of a large log; small ones do not", async () => {
    let brought = (_isBrought: boolean): void => {};
    let checkpoints = 0;
    const { writer, small, large, sent, land } = openSlow(() => {
      checkpoints++;
      return new Promise((resolve) => (brought = resolve));
    });
    large("A", 2, limits.checkpointBytes);
    large("B");
    await sent();
    land(0);
    small("a");
    expect([await sent(), checkpoints]).toEqual([["A", "a"], 1]);
    land(1);
    brought(true);
    expect([await sent(), checkpoints]).toEqual([["A", "a", "B"], 1]);
    land(2);
    expect([await sent(), checkpoints]).toEqual([["A", "a", "B"], 1]);
    await writer.close();
  });

  it("are checkpointed before the writer is closed", async () => {
    const told: string[] = [];
    let brought = (_isBrought: boolean): void => {};
    const { writer, large, sent, land } = openSlow(() => new Promise((resolve) => (brought = resolve)));
    large("A", 2, limits.checkpointBytes);
    await sent();
    land(0);
    await sent();
    const closed = writer.close().then(() => told.push("closed"));
    await sent();
    told.push("brought");
    brought(true);
    await closed;
    expect(told).toEqual(["brought", "closed"]);
  });

  it("do not wait for a log that a reader holds: its checkpoint is retried with the next group", async () => {
    let checkpoints = 0;
    const { small, large, sent, land } = openSlow(async () => {
      checkpoints++;
      return checkpoints > 1;
    });
    large("A", 2, limits.checkpointBytes);
    large("B");
    await sent();
    land(0);
    expect([await sent(), checkpoints]).toEqual([["A", "B"], 1]);
    land(1);
    small("a");
    expect([await sent(), checkpoints]).toEqual([["A", "B", "a"], 2]);
    land(2);
    expect([await sent(), checkpoints]).toEqual([["A", "B", "a"], 2]);
  });

  it("fail with everything else if a sync of the checkpoint failed", async () => {
    const { writer, large, sent, land, fatal } = openSlow(() => Promise.reject(new Error("disk I/O error")));
    large("A", 2, limits.checkpointBytes);
    await sent();
    land(0);
    await sent();
    expect(fatal.map(({ message }) => message)).toEqual(["disk I/O error"]);
    expect(await codeOf(writer.call("note", ["late"]))).toBe("UNAVAILABLE");
  });
});

describe("Texts in pieces", () => {
  const pieceOf = (n: number, textNo = 1) => ({ textNo, n, bytes: Buffer.alloc(limits.storedPieceBytes) });
  const threePieces = [0, 1, 2].map((n) => pieceOf(n));
  /** A writer whose writes are noted, and end as the test says. */
  function openNoting(parts: { fails?: (write: Write) => boolean } = {}) {
    const groups: string[] = [];
    const writer = new GroupWriter({
      send: async (group) => {
        groups.push(
          group.map(({ verb, args: [arg] }) => `${verb} ${JSON.stringify((arg as TextPiece).n ?? arg)}`).join(),
        );
        return group.map((write) =>
          parts.fails?.(write) ? { ok: false, message: "no", isFull: false } : { ok: true, value: undefined },
        );
      },
      onFatal: (error) => expect.unreachable(error.message),
      reserve: { hasRoom: () => true },
    });
    return { writer, groups };
  }
  const whole = { bytes: 3 * limits.storedPieceBytes, endpointNo: 1, pieces: threePieces };

  it("are on disk before their call, which keeps its order within its endpoint; other calls overtake it", async () => {
    const { writer, groups } = openNoting();
    const calls = [writer.call("submit", ["large"], whole), writer.follow("take", ["a job"], 1)];
    for (let n = 0; n < 3; n++) {
      calls.push(writer.call("submit", [`small ${n}`], { endpointNo: 2 }));
      await calls.at(-1);
    }
    await Promise.all(calls);
    await writer.close();
    const at = (name: string) => groups.findIndex((group) => group.includes(name));
    expect(groups).toHaveLength(7);
    expect(groups.filter((group) => group.includes("storePiece"))).toEqual([
      "storePiece 0,storePiece 1",
      "storePiece 2",
    ]);
    expect(at("storePiece 2")).toBeLessThan(at("large"));
    expect(at("large")).toBeLessThan(at("a job"));
    expect(at("small 1")).toBeLessThan(at("large"));
    expect(groups.at(-1)).toMatch(/^dropStaged \[1\]/);
  });

  it("are transferred to the writing thread in memory of their own", async () => {
    const text = Buffer.alloc(2 * limits.storedPieceBytes, 1);
    const sent: Uint8Array[] = [];
    const writer = new GroupWriter({
      send: (group) => {
        sent.push(
          ...group.filter(({ verb }) => verb === "storePiece").map(({ args: [piece] }) => (piece as TextPiece).bytes),
        );
        return group.map(() => ({ ok: true, value: undefined }));
      },
      onFatal: (error) => expect.unreachable(error.message),
      reserve: { hasRoom: () => true },
    });
    const pieces: TextPiece[] = [];
    new TextCutter({ prepare: () => ({ get: () => ({ no: 1 }) }) } as never).cut(text, pieces);
    await writer.call("submit", [], { bytes: text.length, pieces });
    expect(sent.map(({ buffer, length }) => [buffer === text.buffer, buffer.byteLength - length])).toEqual([
      [false, 0],
      [false, 0],
    ]);
  });

  it("that cannot be written fail their call, and their written pieces are deleted", async () => {
    const { writer, groups } = openNoting({ fails: ({ args: [piece] }) => (piece as TextPiece).n === 2 });
    expect(await codeOf(writer.call("submit", ["large"], whole))).toBe("Error: no");
    expect(await codeOf(writer.call("submit", ["small"], { endpointNo: 1 }))).toBe("done");
    await writer.close();
    expect(groups.some((group) => group.includes("large"))).toBe(false);
    expect(groups.some((group) => group.includes("dropStaged [1]"))).toBe(true);
  });

  it("are deleted later if that was not possible at once", async () => {
    let failing = 2; // the call itself, and the first drop
    const { writer, groups } = openNoting({ fails: ({ verb }) => verb !== "storePiece" && failing-- > 0 });
    expect(await codeOf(writer.call("submit", ["large"], whole))).toBe("Error: no");
    const pieces = [pieceOf(0, 2)];
    expect(await codeOf(writer.call("submit", ["again"], { ...whole, pieces }))).toBe("done");
    await writer.close();
    expect(groups.at(-1)).toBe("dropStaged [1,2]");
  });

  it("count in the queue until they are in flight", async () => {
    const { writer } = openNoting();
    const bytes = limits.queuedBytesMax;
    const pieces = Array.from({ length: bytes / limits.storedPieceBytes }, (_, n) => pieceOf(n));
    const large = writer.call("submit", ["large"], { bytes, endpointNo: 1, pieces });
    expect(await codeOf(writer.call("submit", ["late"], { bytes: 2 }))).toBe("UNAVAILABLE");
    await large;
    expect(await codeOf(writer.call("submit", ["next"], { bytes }))).toBe("done");
    await writer.close();
  });
});

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

  it("is checkpointed by a thread of its own, up to what a reader holds, and its end by the writing thread", async () => {
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
