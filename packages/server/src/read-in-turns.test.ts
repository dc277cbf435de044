import { Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { limits } from "./limits/index.js";
import { useUpTurn } from "./testing/turns-fixture.js";
import { readInTurns } from "./turns.js";

describe("A connection to a worker or receiver", () => {
  /** What a reader of the connection is told, in order. */
  function connection() {
    const socket = new Socket();
    readInTurns(socket, ["test"]);
    const told: string[] = [];
    for (const event of ["readable", "error", "close"]) socket.on(event, () => told.push(event));
    return { socket, told };
  }

  it("is read at once while a turn lasts", () => {
    const { socket, told } = connection();
    socket.emit("readable");
    expect(told).toEqual(["readable"]);
  });

  it("makes no stacks for the errors of its reader, which may be one for each header", () => {
    const { socket } = connection();
    const errors: Error[] = [];
    socket.on("readable", () => errors.push(new Error("too many headers")));
    socket.emit("readable");
    errors.push(new Error("made later"));
    expect(errors.map(({ stack }) => stack?.includes(import.meta.filename))).toEqual([false, true]);
  });

  it("is read once in a later turn after this one is over, however much arrives until then", async () => {
    const { socket, told } = connection();
    useUpTurn();
    for (let n = 0; n < 3; n++) socket.emit("readable");
    expect(told).toEqual([]);
    await turn();
    await turn();
    expect(told).toEqual(["readable"]);
  });

  it.each(["error", "close"])("is read before it tells of its %s", async (event) => {
    const { socket, told } = connection();
    useUpTurn();
    socket.emit("readable");
    socket.emit(event, new Error("reset"));
    await turn();
    await turn();
    expect(told).toEqual(["readable", event]);
  });

  it("is read in slices, and what is left waits for the next turn", async () => {
    const { socket } = connection();
    socket.removeAllListeners("readable");
    const sizes: number[] = [];
    let passes = 0;
    socket.on("readable", () => {
      passes++;
      for (let piece = socket.read(); piece !== null; piece = socket.read()) {
        sizes.push(piece.length);
        useUpTurn();
      }
    });
    socket.push(Buffer.alloc(3 * limits.readSliceBytes - 1));
    await expect.poll(() => sizes.reduce((sum, size) => sum + size, 0)).toBe(3 * limits.readSliceBytes - 1);
    expect(sizes).toEqual([limits.readSliceBytes, limits.readSliceBytes, limits.readSliceBytes - 1]);
    expect(passes).toBeGreaterThanOrEqual(3);
  });

  it("is read no further once its reader has destroyed it", async () => {
    const { socket } = connection();
    socket.removeAllListeners("readable").removeAllListeners("error");
    let slices = 0;
    socket.on("error", () => {});
    socket.on("readable", () => {
      while (socket.read() !== null) {
        slices++;
        socket.destroy(new Error("too many headers"));
      }
    });
    socket.push(Buffer.alloc(20 * limits.readSliceBytes));
    await new Promise((done) => socket.once("close", done));
    expect(slices).toBe(1);
  });
});
