import { describe, expect, it } from "vitest";
import { limits } from "../../../limits/index.js";
import type { Verb } from "../writer.js";
import { chunkSql, postgresChunkStore } from "./chunks.js";

/** Connections that answer every read with these rows, and record its statement. */
function connections(rows: readonly unknown[]) {
  const asked: string[] = [];
  const read = async (text: string) => {
    asked.push(text);
    return rows as never;
  };
  return { read, asked };
}

const row = (output: string | null) => ({ index: 0, start: 1, output, metrics: null });

describe("A page of chunks", () => {
  it("that is small is read at once, on the connections of all reads", async () => {
    const [reads, largeReads] = [connections([row("1"), row("2")]), connections([])];
    const chunks = await postgresChunkStore(reads, largeReads, {} as never).read({
      jobNo: 1,
      fromIndex: 0,
      bytesMax: 100,
    });
    expect(chunks.map(({ output }) => output)).toEqual(["1", "2"]);
    expect([reads.asked, largeReads.asked]).toEqual([[chunkSql.read], []]);
  });

  it("is read with only a few others at a time, so that other reads have connections", async () => {
    const waiting: (() => void)[] = [];
    const read = () => new Promise<never>((land) => waiting.push(() => land([row("1")] as never)));
    const store = postgresChunkStore({ read }, connections([]), {} as never);
    const followers = Array.from({ length: 10 }, (_, n) => store.read({ jobNo: 1, fromIndex: n, bytesMax: 100 }));
    expect(waiting).toHaveLength(limits.chunkReadersMax);
    expect(limits.chunkReadersMax).toBeLessThan(limits.readersMax);
    for (let landed = 0; landed < followers.length; landed++) {
      await new Promise(setImmediate);
      waiting[landed]?.();
    }
    expect(await Promise.all(followers)).toHaveLength(10);
  });

  it("that several followers wait for is read once, after the last of them asked", async () => {
    const landings: (() => void)[] = [];
    const read = () => new Promise<never>((land) => landings.push(() => land([row("1")] as never)));
    const store = postgresChunkStore({ read }, connections([]), {} as never);
    const begun = Array.from({ length: limits.chunkReadersMax }, () =>
      store.read({ jobNo: 1, fromIndex: 0, bytesMax: 100 }),
    );
    const waiting = Array.from({ length: 10 }, () => store.read({ jobNo: 1, fromIndex: 0, bytesMax: 100 }));
    expect(landings).toHaveLength(begun.length);
    for (const land of landings.splice(0)) land();
    await Promise.all(begun);
    expect(landings).toHaveLength(1);
    const late = store.read({ jobNo: 1, fromIndex: 0, bytesMax: 100 }); // the read under way may not see what was stored since it began
    expect(landings).toHaveLength(2);
    for (const land of landings) land();
    expect(await Promise.all([...waiting, late])).toHaveLength(11);
  });

  it("that is large is read on the few connections for large texts", async () => {
    const large = `"${"é".repeat(limits.textRowBytes)}"`;
    const bytes = Buffer.from(large);
    const pieces = [2, 0, 1].map((n) => {
      const piece = bytes.subarray(n * limits.textRowBytes, (n + 1) * limits.textRowBytes).toString("base64");
      return { index: 8, start: 1, n, piece, metrics: n === 0 ? '{"a":1}' : null };
    });
    const small = { index: 7, start: 1, n: 0, piece: Buffer.from("1").toString("base64"), metrics: null };
    const [reads, largeReads] = [connections([row("1"), row(null)]), connections([...pieces, small])];
    const chunks = await postgresChunkStore(reads, largeReads, {} as never).read({
      jobNo: 1,
      fromIndex: 0,
      bytesMax: 100,
    });
    expect(chunks).toEqual([
      { index: 7, start: 1, output: "1", metrics: undefined },
      { index: 8, start: 1, output: bytes, metrics: '{"a":1}' },
    ]);
    expect([reads.asked, largeReads.asked]).toEqual([[chunkSql.read], [chunkSql.readLarge]]);
  });
});

describe("Chunks of many megabytes", () => {
  const output = `"${"x".repeat(limits.storedPieceBytes)}"`;

  /** Appends them on a connection that answers so; returns the first words of its statements. */
  async function append(answers: Readonly<Record<"peek" | "grow", unknown>>) {
    const asked: string[] = [];
    const query = async (text: string) => {
      asked.push(text.trim().split(" ")[0] as string);
      if (text === chunkSql.peek.text) return [answers.peek];
      return text === chunkSql.grow.text ? [answers.grow] : [];
    };
    const group = { connection: { query }, lane: 0, again: false };
    const call = async (verb: Verb<unknown[], boolean>, args: unknown[]) => (await verb.run(group as never, [args]))[0];
    const store = postgresChunkStore(connections([]), connections([]), { call } as never);
    const post = { endpointNo: 1, jobId: "a", workerNo: 1, chunks: [{ output }, { output }], name: undefined };
    const result = await store.append(post).catch((error) => error.code);
    return { result, asked };
  }
  const room = { jobNo: 1, start: 1, from: 5 };

  it("are put where their stream ended, and locked for at the end", async () => {
    const { result, asked } = await append({ peek: { ...room, isRepeat: false }, grow: room });
    expect([result, asked]).toEqual([true, ["BEGIN", "SELECT", "INSERT", "INSERT", "WITH", "COMMIT"]]);
  });

  it.each([
    ["has grown", { ...room, from: 6 }],
    ["belongs to another start", { ...room, start: 2 }],
    ["holds them already", { ...room, from: null }],
  ])("are a conflict, after which they are appended again, if the stream meanwhile %s", async (_, grow) => {
    const { result, asked } = await append({ peek: { ...room, isRepeat: false }, grow });
    expect([result, asked.at(-1)]).toEqual(["40001", "ROLLBACK"]);
  });

  it("are not sent if their call is a repeat", async () => {
    const { result, asked } = await append({ peek: { ...room, isRepeat: true }, grow: room });
    expect([result, asked]).toEqual([true, ["BEGIN", "SELECT", "COMMIT"]]);
  });
});
