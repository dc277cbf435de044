import { Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
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
});
