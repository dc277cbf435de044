import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { stringOf } from "../../../json/json.js";
import { limits } from "../../../limits/index.js";
import { completed, Scene } from "../../contracts/scene.js";
import { newDirectory, onFatal } from "../../contracts/sqlite-fixture.js";
import { openDatabase } from "../driver.js";
import { migrate } from "../migrate.js";
import { openSqlite } from "../open.js";
import { textVerbs } from "./stored-texts.js";

const large = (letter: string) => `"${letter.repeat(2 * limits.storedPieceBytes)}"`;

describe("A text in pieces", () => {
  let directory: string;
  let path: string;
  let scene: Scene;
  let worker: number;
  beforeEach(async () => {
    directory = newDirectory();
    path = join(directory, "millrace.db");
    const stores = openSqlite({ path, onFatal });
    scene = await Scene.open(async () => ({
      stores,
      reopen: async () => openSqlite({ path, onFatal }),
      end: async () => {},
    }));
    worker = await scene.worker("worker00000001");
  });
  afterEach(async () => {
    await scene.stores.close();
    rmSync(directory, { recursive: true });
  });

  /** The number of stored and staged texts in pieces, once everything is written. */
  async function stored(): Promise<{ texts: number; staged: number }> {
    await scene.stores.close();
    const db = openDatabase(path, { readOnly: true });
    const texts = db.prepare("SELECT count(DISTINCT text_no) AS n FROM text_piece").get().n;
    const staged = db.prepare("SELECT count(*) AS n FROM staged_text").get().n;
    db.close();
    await scene.reopen();
    return { texts, staged };
  }

  it("is deleted with the row that refers to it", async () => {
    const id = await scene.submit({ body: large("i") });
    const { no } = await scene.takeOne(worker);
    expect(await stored()).toEqual({ texts: 1, staged: 0 });
    for (const letter of ["p", "q"]) {
      await scene.stores.jobs.progress({
        endpointNo: scene.endpointNo,
        jobId: id,
        workerNo: worker,
        progress: large(letter),
      });
      expect(await stored()).toEqual({ texts: 2, staged: 0 });
    }
    await scene.append(id, worker, large("c"), large("d"), '"small"');
    expect(await stored()).toEqual({ texts: 4, staged: 0 });
    await scene.settle(id, worker, { status: "FAILED", error: "no", output: large("o") });
    expect(await stored()).toEqual({ texts: 4, staged: 0 });
    expect((await scene.job(id)).output).toBe(large("o"));
    expect(await scene.stores.chunks.read({ jobNo: no, fromIndex: 0, bytesMax: limits.outputBytesHard })).toHaveLength(
      3,
    );
    await scene.change(id, { by: "retry" });
    expect(await stored()).toEqual({ texts: 1, staged: 0 });
    await scene.takeOne(worker);
    await scene.stores.jobs.progress({
      endpointNo: scene.endpointNo,
      jobId: id,
      workerNo: worker,
      progress: large("p"),
    });
    await scene.change(id, { by: "cancel" });
    expect(await stored()).toEqual({ texts: 1, staged: 0 });
    scene.now += 2 * limits.runRetentionMs;
    await scene.stores.jobs.confirmStopped({ workerNo: worker, jobNos: [no] });
    expect(await scene.stores.jobs.sweep({ now: scene.now, limit: 10 })).toMatchObject({ deleted: 1 });
    expect(await stored()).toEqual({ texts: 0, staged: 0 });
  });

  it("is deleted if its call fails", async () => {
    const { jobs, endpoints } = scene.stores;
    const id = await scene.jobIn("COMPLETED", worker);
    expect(await scene.settle(id, worker, completed(large("o")))).toBeUndefined();
    expect(
      await jobs.progress({ endpointNo: scene.endpointNo, jobId: id, workerNo: worker, progress: large("p") }),
    ).toBe(false);
    expect(await scene.append(id, worker, large("c"))).toBe(false);
    const idempotency = { keyHash: "k", bodyHash: "b", route: "run", expiresAt: scene.now + 1_000 };
    await scene.submit({ idempotency });
    expect(await jobs.submit(scene.newJob({ idempotency, body: large("i") }))).toMatchObject({ kind: "known" });
    await endpoints.remove(scene.endpointNo, scene.now);
    expect(await jobs.submit(scene.newJob({ body: large("i") }))).toEqual({ kind: "closed" });
    expect(await stored()).toEqual({ texts: 0, staged: 0 });
  });

  it("is used for each part of a cut chunk if the parts together are too large for one write", async () => {
    const id = await scene.submit();
    const { no } = await scene.takeOne(worker);
    const parts = ["a", "b", "c"].map((letter) => `"${letter.repeat(limits.storedPieceBytes / 2)}"`);
    await scene.append(id, worker, ...parts, '"small"');
    const read = await scene.stores.chunks.read({ jobNo: no, fromIndex: 0, bytesMax: limits.outputBytesHard });
    expect(read.map(({ output }) => stringOf(output))).toEqual([...parts, '"small"']);
    expect(await stored()).toEqual({ texts: 3, staged: 0 });
  });

  it("whose first piece failed is dropped with its others", () => {
    const db = openDatabase(":memory:");
    migrate(db);
    const { storePiece, dropStaged } = textVerbs(db);
    storePiece?.({ textNo: 5, n: 1, bytes: Buffer.from("b") });
    storePiece?.({ textNo: 5, n: 2, bytes: Buffer.from("c") });
    dropStaged?.([5]);
    const left = (table: string) => db.prepare(`SELECT count(*) AS n FROM ${table}`).get().n;
    expect([left("text_piece"), left("staged_text")]).toEqual([0, 0]);
    db.close();
  });

  it("is read whole even if its pieces have another size than today", async () => {
    const id = await scene.submit({ body: large("i") });
    await scene.stores.close();
    const db = openDatabase(path);
    db.exec(`DELETE FROM text_piece; INSERT INTO text_piece SELECT body_text, 0, x'2261' FROM job_input;
      INSERT INTO text_piece SELECT body_text, 1, x'6222' FROM job_input`);
    db.close();
    await scene.reopen();
    const { no } = await scene.takeOne(worker);
    expect(await scene.find(id)).toMatchObject({ no });
    expect(Buffer.concat((await scene.stores.reader.input(no))!).toString()).toBe('"ab"');
  });

  it("that a crash has left without its row is deleted when the database is opened again", async () => {
    const id = await scene.submit({ body: large("i") });
    await scene.stores.close();
    const db = openDatabase(path);
    db.exec(`INSERT INTO staged_text VALUES (7), (8);
      INSERT INTO text_piece VALUES (7, 0, x'01'), (7, 1, x'02'), (8, 0, x'03')`);
    db.close();
    await scene.reopen();
    expect(await stored()).toEqual({ texts: 1, staged: 0 });
    // New texts must not reuse the numbers of old ones.
    await scene.submit({ body: large("j") });
    const [first, second] = await scene.take(worker, 2);
    const inputOf = async (no: number) => Buffer.concat((await scene.stores.reader.input(no))!).toString();
    expect(first?.id).toBe(id);
    expect([await inputOf(first!.no), await inputOf(second!.no)]).toEqual([large("i"), large("j")]);
  });

  it("counts with its size in lists, takes and deliveries, and is put into a page with room for it", async () => {
    const bytes = large("o").length;
    const id = await scene.submit({ body: large("i"), webhook: "https://example.com/" });
    const [taken] = await scene.take(worker, 2);
    expect(taken).toMatchObject({ input: undefined, inputBytes: bytes });
    await scene.settle(id, worker, completed(large("o")));
    expect(await scene.stores.reader.submission(taken!.no)).toMatchObject({ inputBytes: bytes });
    expect(await scene.stores.deliveries.due({ now: scene.now, limit: 10 })).toMatchObject([{ bytes: 2 * bytes }]);
    const list = (bytesMax: number) =>
      scene.stores.reader.list({ endpointNo: scene.endpointNo, limit: 10, bytesMax, now: scene.now });
    expect((await list(bytes - 1)).jobs).toMatchObject([{ output: undefined, unreadBytes: bytes }]);
    expect((await list(bytes)).jobs).toMatchObject([{ output: large("o"), unreadBytes: 0 }]);
  });

  it("with a multiple of a piece's size is read whole", async () => {
    for (const bytes of [limits.storedPieceBytes, limits.storedPieceBytes + 1, 2 * limits.storedPieceBytes]) {
      const text = `"${"x".repeat(bytes - 2)}"`;
      const id = await scene.submit({ body: text });
      const { no } = await scene.takeOne(worker);
      await scene.settle(id, worker, completed(text));
      expect(Buffer.concat((await scene.stores.reader.input(no))!).toString() === text).toBe(true);
      expect((await scene.job(id)).output === text).toBe(true);
    }
  });
});

describe("A database from before texts were stored in pieces", () => {
  it("is read unchanged", async () => {
    const directory = newDirectory();
    const path = join(directory, "millrace.db");
    const older = openDatabase(path);
    migrate(older, 6);
    const text = large("x");
    older.exec(`INSERT INTO job (no, endpoint_no, id, place, status, low_priority, worker_no, created_at, queued_at, taken_at,
      finished_at, ttl_end_at, expires_at, execution_timeout_ms, retention_ms, has_webhook, keyed)
      VALUES (1, 1, 'a', 1, 2, 0, 1, 1, 1, 1, 1, 9, 9, 5, 5, 0, 0)`);
    older.prepare("INSERT INTO job_input (job_no, body) VALUES (1, ?)").run(text);
    older.prepare("INSERT INTO job_output (job_no, output) VALUES (1, ?)").run(text);
    older.prepare(`INSERT INTO chunk (job_no, "index", start, output) VALUES (1, 0, 1, ?)`).run(text);
    older.close();
    const { reader, chunks, close } = openSqlite({ path, onFatal });
    const whole = (pieces: readonly Uint8Array[] | undefined) => Buffer.concat(pieces!).toString();
    expect(whole(await reader.input(1)) === text).toBe(true);
    expect(
      whole((await reader.findTexts({ endpointNo: 1, jobId: "a", now: 5, bytesMax: text.length }))?.texts?.output) ===
        text,
    ).toBe(true);
    expect(stringOf((await chunks.read({ jobNo: 1, fromIndex: 0, bytesMax: text.length }))[0]!.output) === text).toBe(
      true,
    );
    await close();
    rmSync(directory, { recursive: true });
  });
});
