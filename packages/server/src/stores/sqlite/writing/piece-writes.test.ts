import { describe, expect, it } from "vitest";
import { limits } from "../../../limits/index.js";
import { TextCutter, type TextPiece } from "../texts/stored-texts.js";
import type { Write } from "./transactions.js";
import { GroupWriter } from "./writer.js";
import { codeOf } from "./writer-fixture.js";

describe("Texts in pieces", () => {
  const pieceOf = (n: number, textNo = 1) => ({ textNo, n, bytes: Buffer.alloc(limits.storedPieceBytes) });
  const threePieces = [0, 1, 2].map((n) => pieceOf(n));
  /** A writer that records its writes, which end as the test decides. */
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

  it("are transferred to the writing thread in separate memory", async () => {
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
    let failing = 2; // the call itself, and the first attempt to delete
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
