import { describe, expect, it } from "vitest";
import { limits } from "../../../limits/index.js";
import { GroupWriter } from "./writer.js";
import { codeOf } from "./writer-fixture.js";

/** A writer whose groups reach the disk when the test decides. */
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
  /** The calls sent so far, once the writer has had its turns. */
  const sent = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    return groups.map(({ names }) => names.join(" "));
  };
  return { writer, groups, fatal, small, large, sent, land: (at: number) => groups[at]?.land() };
}

describe("Large calls", () => {
  it("go one at a time, in a separate group, after small calls", async () => {
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

  it("of workers go before calls of clients, which have their share of each group", async () => {
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

  it("wait during the checkpoint of a large log; small calls do not", async () => {
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
