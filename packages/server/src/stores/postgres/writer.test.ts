import { describe, expect, it, onTestFinished, vi } from "vitest";
import { realTime } from "../../clock.js";
import { limits } from "../../limits/index.js";
import type { Connection } from "./connection/connection.js";
import type { Connections } from "./connection/connections.js";
import { Lanes, type Verb } from "./writer.js";

type Args = [name: string];

/** Three lanes whose groups are committed when the test decides. */
function open() {
  const groups: { names: string[]; land: () => void }[] = [];
  let flushes = 0;
  const query = async () => void flushes++;
  const connections = { lend: <T>(use: (connection: Connection) => Promise<T>) => use({ query } as never) };
  const lanes = new Lanes(connections as Connections, [0, 1, 2], 1, () => {});
  const verb: Verb<Args, void> = {
    key: (name) => name.charAt(0),
    run: (_group, calls) =>
      new Promise((land) => {
        groups.push({ names: calls.map(([name]) => name), land: () => land(calls.map(() => undefined)) });
      }),
  };
  /** The calls sent so far, once the lanes have had their turns. */
  const sent = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    return groups.map(({ names }) => names.join(" "));
  };
  return {
    small: (name: string) => void lanes.call(verb, [name], 1),
    large: (name: string, bytes: number = limits.groupBytesMax - 1) => void lanes.call(verb, [name], bytes),
    sent,
    land: (at: number) => groups[at]?.land(),
    flushes: () => flushes,
  };
}

describe("Large calls on PostgreSQL", () => {
  it("use one connection at a time, and leave the others to small calls", async () => {
    const { small, large, sent, land } = open();
    for (const name of ["A", "B", "C"]) large(name);
    expect(await sent()).toEqual(["A"]);
    small("x");
    expect(await sent()).toEqual(["A", "x"]);
    small("y");
    expect(await sent()).toEqual(["A", "x", "y"]);
    land(0);
    expect(await sent()).toEqual(["A", "x", "y", "B"]);
  });

  it("get the next free connection, however many small calls wait", async () => {
    const { small, large, sent, land } = open();
    for (const name of ["a", "b", "c"]) {
      small(name);
      await sent();
    }
    small("d");
    large("A");
    land(1);
    expect(await sent()).toEqual(["a", "b", "c", "A"]);
  });

  it("never share a group with small calls, and share a group up to its size", async () => {
    const { small, large, sent } = open();
    for (const name of ["A", "B", "C"]) large(name, limits.groupBytesMax / 2);
    small("x");
    expect(await sent()).toEqual(["A B", "x"]);
  });

  it("of many megabytes do not hold up calls of a few hundred kilobytes", async () => {
    const { small, large, sent, land } = open();
    for (const name of ["A", "B"]) large(name, limits.hugeCallBytes);
    large("c", limits.largeCallBytes);
    expect(await sent()).toEqual(["A", "c"]);
    small("x");
    large("A's second", limits.largeCallBytes);
    land(1);
    expect(await sent()).toEqual(["A", "c", "x"]);
    land(0);
    expect(await sent()).toEqual(["A", "c", "x", "B"]);
    land(3);
    expect(await sent()).toEqual(["A", "c", "x", "B", "A's second"]);
  });

  it("are followed by the small calls of their key once they are committed", async () => {
    const { small, large, sent, land } = open();
    large("A");
    small("A's second");
    expect(await sent()).toEqual(["A"]);
    small("A's third");
    small("x");
    expect(await sent()).toEqual(["A", "x"]);
    land(0);
    expect(await sent()).toEqual(["A", "x", "A's second"]);
  });

  it("have the log flushed while one of many megabytes is written, so that no commit waits for all of it", async () => {
    const pauses: (() => void)[] = [];
    const sleep = vi.spyOn(realTime, "sleep").mockImplementation(() => new Promise((over) => void pauses.push(over)));
    onTestFinished(() => void sleep.mockRestore());
    const { small, large, sent, land, flushes } = open();
    /** Ends the pause before the next flush. */
    const pass = async () => {
      pauses.shift()?.();
      await sent();
      return { flushes: flushes(), pauses: pauses.length };
    };
    small("x");
    large("A");
    await sent();
    expect(pauses).toEqual([]);
    large("B", limits.hugeCallBytes);
    expect(await sent()).toEqual(["A", "x", "B"]);
    expect(await pass()).toEqual({ flushes: 1, pauses: 1 });
    expect(await pass()).toEqual({ flushes: 2, pauses: 1 });
    land(2);
    await sent();
    expect(await pass()).toEqual({ flushes: 2, pauses: 0 });
  });
});
