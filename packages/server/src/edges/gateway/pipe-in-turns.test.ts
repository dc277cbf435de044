import { PassThrough } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { limits } from "../../limits/index.js";
import { turnFor } from "../shared/replies/write-turns.js";
import { pipeInTurns } from "./pipe-in-turns.js";

const highWaterMark = 16 * 2 ** 20;

describe("Joined connections", () => {
  it("pass everything on in order, and then the end", async () => {
    const [from, to] = [new PassThrough(), new PassThrough()];
    pipeInTurns(from, to);
    const bytes = Buffer.from(Array.from({ length: 5 * limits.lentBytesPerTurn }, (_, n) => n % 251));
    for (let at = 0; at < bytes.length; at += 60_000) from.write(bytes.subarray(at, at + 60_000));
    from.end();
    expect((await buffer(to)).equals(bytes)).toBe(true);
  });

  it("pass on the last bytes of a side that ends while they wait for their turn", async () => {
    const [from, to] = [new PassThrough(), new PassThrough()];
    pipeInTurns(from, to);
    await turn();
    turnFor(3 * limits.lentBytesPerTurn); // used by other connections
    from.write("last words");
    from.end();
    expect((await buffer(to)).toString()).toBe("last words");
  });

  it("share the bytes of a turn", async () => {
    const part = Buffer.alloc(64 * 1_024);
    const pairs = Array.from({ length: 100 }, () => [
      new PassThrough({ highWaterMark }),
      new PassThrough({ highWaterMark }),
    ]) as [PassThrough, PassThrough][];
    const passed = () => pairs.reduce((sum, [, to]) => sum + to.readableLength, 0);
    for (const [from, to] of pairs) pipeInTurns(from, to);
    await turn();
    for (const [from] of pairs) from.write(part);
    const perTurn = [passed()];
    while (passed() < pairs.length * part.length) {
      const before = passed();
      await turn();
      perTurn.push(passed() - before);
    }
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(2 * limits.lentBytesPerTurn);
  });

  it.each([
    { it: "end if one side takes nothing for long", goesOn: false },
    { it: "last if the reader goes on in time", goesOn: true },
  ])("$it", async ({ goesOn }) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const [from, to] = [new PassThrough(), new PassThrough()];
    pipeInTurns(from, to);
    while (from.write(Buffer.alloc(64 * 1_024))) await turn();
    await vi.advanceTimersByTimeAsync(limits.gateStallMs - 1);
    expect([from.destroyed, to.destroyed]).toEqual([false, false]);
    if (goesOn) to.resume();
    await turn();
    await vi.advanceTimersByTimeAsync(goesOn ? 2 * limits.gateStallMs : 1);
    expect([from.destroyed, to.destroyed]).toEqual([!goesOn, !goesOn]);
    vi.useRealTimers();
  });

  it("go at the pace of the reader", async () => {
    const [from, to] = [new PassThrough(), new PassThrough()];
    pipeInTurns(from, to);
    let taken = 0;
    while (from.write(Buffer.alloc(8 * 1_024)) && taken < 100) {
      taken++;
      await turn();
    }
    expect(taken).toBeLessThan(100);
    to.resume();
    await expect.poll(() => from.writableLength + to.readableLength).toBe(0);
  });
});
