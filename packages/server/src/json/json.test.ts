import { readdirSync, readFileSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../limits/index.js";
import { useUpTurn } from "../testing/turns-fixture.js";
import { turns } from "../turns.js";
import {
  ArrivingText,
  beginningOf,
  checkBatch,
  checkInput,
  checkPart,
  checkWord,
  elementsOf,
  jsonOf,
  memberOf,
  stringOf,
  textOf,
} from "./json.js";

const large = (text: string) => `{"input":{"text":"${text.padEnd(limits.jsonThreadBytes, "x")}"},"webhook":"http://a"}`;

afterEach(() => void vi.restoreAllMocks());

const nowhere = { start: 0, end: 0 };

describe("A checked body", () => {
  it("is checked at once while it is small", () => {
    expect(checkInput(Buffer.from('{"input":{}}'))).not.toBeInstanceOf(Promise);
  });

  it.runIf(process.platform === "linux")("is checked in a thread that gives way to others if it is large", async () => {
    const niceOf = (task: string) =>
      Number(readFileSync(`/proc/self/task/${task}/stat`, "utf8").split(") ")[1]?.split(" ")[16]);
    const own = niceOf(`${process.pid}`);
    await checkInput(Buffer.from(large("a".repeat(limits.jsonLargeBytes))));
    const lowered = Math.min(19, own + limits.jsonLargeNice);
    expect(readdirSync("/proc/self/task").map(niceOf)).toContain(lowered);
    expect(niceOf(`${process.pid}`)).toBe(own);
  });

  it.each([
    ["small", '{"input":{"a":1},"webhook":"http://a"}'],
    ["checked in the thread", large("é😀")],
  ])("keeps its bytes and gives its members: %s", async (_, text) => {
    const checked = await checkInput(Buffer.from(text));
    expect(checked.bytes.toString() === text).toBe(true);
    expect(checked.scan.ok && [...checked.scan.members.keys()]).toEqual(["input", "webhook"]);
    const span = checked.scan.ok ? checked.scan.members.get("input")! : { start: 0, end: 0 };
    expect(textOf(checked.bytes, span) === text.slice(9, text.indexOf(',"webhook"'))).toBe(true);
    expect([memberOf(checked, "webhook"), memberOf(checked, "policy")]).toEqual(["http://a", undefined]);
  });

  it("goes back to its own caller when many are checked in the thread", async () => {
    const texts = Array.from({ length: 8 }, (_, n) => large(`text ${n} `));
    const all = await Promise.all(texts.map((text) => checkInput(Buffer.from(text))));
    expect(all.map(({ bytes }, at) => bytes.toString() === texts[at])).toEqual(texts.map(() => true));
  });

  it("is copied in turns with other work if it is a large part of a text that stays in place", async () => {
    const text = Buffer.from(`[${large("a")}]`);
    const before = text.toString();
    const took = vi.spyOn(turns, "take");
    useUpTurn();
    const { bytes, scan } = await checkPart(text.subarray(1, -1));
    expect(took).toHaveBeenCalled();
    expect([scan.ok, `[${bytes}]` === before, text.toString() === before]).toEqual([true, true, true]);
  });

  it("leaves data that shares its memory alone", async () => {
    const whole = Buffer.from(`__${large("y")}__`);
    const checked = await checkInput(whole.subarray(2, whole.length - 2));
    expect([checked.scan.ok, whole.toString("latin1", 0, 11)]).toEqual([true, '__{"input":']);
  });

  it("checked in the thread also reports the mistake and its position", async () => {
    const text = large("y");
    expect((await checkInput(Buffer.from(`${text}!`))).scan).toMatchObject({ ok: false, at: text.length });
  });

  it.each([
    ["small", ""],
    ["large", "x".repeat(limits.jsonThreadBytes)],
  ])("that is not UTF-8 is refused: %s", async (_, pad) => {
    const bytes = Buffer.concat([Buffer.from(`{"input":"${pad}`), Buffer.from([0xff]), Buffer.from('"}')]);
    expect((await checkInput(bytes)).scan).toEqual({ ok: false, at: 0, why: "it is not UTF-8" });
  });

  it("from a client may have a limited number of names, but not from a worker", async () => {
    const names = Array.from({ length: limits.jsonKeysMax + 1 }, (_, n) => `"${n}":0`);
    const text = `{${names.join(",")}}`;
    expect((await checkInput(Buffer.from(text))).scan.ok).toBe(false);
    expect((await checkWord(Buffer.from(text))).scan.ok).toBe(true);
  });

  it.each([
    ["with its announced length", 0],
    ["with less than its announced length", 100_000],
    ["without an announced length", Number.POSITIVE_INFINITY],
  ])("may come in pieces: %s", async (_, more) => {
    const text = large("é😀".repeat(500_000));
    const bytes = Buffer.from(text);
    const sent = new ArrivingText(bytes.length + more);
    for (let at = 0; at < bytes.length; at += 65_521) sent.add(bytes.subarray(at, at + 65_521));
    expect(sent.length).toBe(bytes.length);
    const checked = await checkInput(sent);
    expect([checked.scan.ok, checked.bytes.equals(Buffer.from(text))]).toEqual([true, true]);
  });

  it("in pieces is checked like a body in one piece", async () => {
    const sent = new ArrivingText(1_000);
    for (const piece of ['{"input":{"a":"', [0xff], '"}}']) sent.add(Buffer.from(piece as string));
    expect((await checkWord(sent)).scan).toEqual({ ok: false, at: 0, why: "it is not UTF-8" });
  });

  it("that comes in pieces beside other bodies keeps its pieces, and a dropped body takes no others", async () => {
    const texts = Array.from({ length: 6 }, (_, n) => large(`${n}`.repeat(1_000_000)));
    const sent = texts.map(() => new ArrivingText(2_000_000));
    for (let at = 0; at < texts[0]!.length; at += 65_536) {
      texts.forEach((text, n) => void sent[n]?.add(Buffer.from(text.slice(at, at + 65_536))));
    }
    sent[0]?.drop();
    const checked = await Promise.all(sent.slice(1).map((each) => checkInput(each)));
    expect(checked.map(({ bytes }, at) => bytes.toString() === texts[at + 1])).toEqual(checked.map(() => true));
  });

  it("in pieces is not checked once it was given up, since the rest would not be valid JSON", async () => {
    const sent = new ArrivingText(2_000_000);
    sent.add(Buffer.from(large("y").repeat(3)));
    sent.drop();
    sent.add(Buffer.from("{}"));
    await expect(async () => checkWord(sent)).rejects.toThrow(/given up/);
  });

  it("passes a large piece on as bytes, and a small one as text", async () => {
    const checked = await checkInput(Buffer.from(large("y")));
    const member = (name: string) => jsonOf(checked.bytes, checked.scan.ok ? checked.scan.members.get(name)! : nowhere);
    expect([member("input") instanceof Uint8Array, member("webhook")]).toEqual([true, '"http://a"']);
  });

  it.each([
    ["as long as a small member may be", 0, true],
    ["longer: it is not parsed", 1, false],
  ])("gives the value of a member that is %s", async (_, more, isGiven) => {
    const value = "x".repeat(limits.memberBytesMax - 2 + more);
    const checked = await checkWord(Buffer.from(`{"status":"${value}"}`));
    expect(memberOf(checked, "status")).toBe(isGiven ? value : undefined);
  });

  it.each([
    ["small", 1_000],
    ["checked in the thread", 100_000],
  ])("of very many members returns only the wanted ones: %s", async (_, count) => {
    const others = Array.from({ length: count }, (_, n) => `"${n}":0`).join(",");
    const { scan } = await checkInput(Buffer.from(`{${others},"input":{},"output":1}`));
    expect(scan.ok && [...scan.members.keys()]).toEqual(["input"]);
    const word = await checkWord(Buffer.from(`{${others},"input":{},"output":1}`));
    expect(word.scan.ok && [...word.scan.members.keys()]).toEqual(["output"]);
  });

  it("is checked in the thread if other work has used up the turn", async () => {
    const body = (size: number) => Buffer.from(`{"input":{"text":"${"x".repeat(size)}"}}`);
    useUpTurn();
    const [late, short] = [checkInput(body(200_000)), checkInput(body(100))];
    expect(late).toBeInstanceOf(Promise);
    expect(short, "a short one").not.toBeInstanceOf(Promise);
    const { bytes, scan } = await late;
    expect([scan.ok, bytes.equals(body(200_000))]).toEqual([true, true]);
    await turn();
    expect(checkInput(body(200_000)), "in the next turn").not.toBeInstanceOf(Promise);
  });

  it("in pieces of one byte is moved to the thread in few pieces", async () => {
    const posts = vi.spyOn(Worker.prototype, "postMessage");
    const bytes = Buffer.from(large("y").padEnd(3 * limits.jsonTransferBytes));
    const sent = new ArrivingText(Number.POSITIVE_INFINITY);
    for (let at = 0; at < bytes.length; at++) sent.add(bytes.subarray(at, at + 1));
    const checked = await checkInput(sent);
    expect([checked.scan.ok, checked.bytes.equals(bytes)]).toEqual([true, true]);
    const moved = posts.mock.calls.map(([, moved]) => (moved as readonly unknown[]).length);
    expect(moved.reduce((sum, count) => sum + count, 0)).toBe(3);
  });

  it("whose beginning was lost with its thread is not judged by the rest", async () => {
    const holders: Worker[] = [];
    const post = Worker.prototype.postMessage;
    const posts = vi.spyOn(Worker.prototype, "postMessage").mockImplementation(function (this: Worker, ...task) {
      holders.push(this);
      return post.apply(this, task);
    });
    const sent = new ArrivingText(Number.POSITIVE_INFINITY);
    const bytes = Buffer.from(large("y").padEnd(2 * limits.jsonTransferBytes));
    sent.add(bytes.subarray(0, limits.jsonTransferBytes));
    holders[0]?.emit("error", new Error("out of memory"));
    sent.add(bytes.subarray(limits.jsonTransferBytes));
    await expect(Promise.resolve(checkInput(sent))).rejects.toThrow(/has ended/);
    posts.mockRestore();
    await holders[0]?.terminate();
    expect((await checkInput(Buffer.from(large("z")))).scan.ok, "the next one").toBe(true);
  });

  it("of a batch gives its elements", async () => {
    const { bytes, scan } = await checkBatch(Buffer.from('[{"id":"a"}, {"id":"b"}]'));
    expect(scan.ok && scan.elements.map((span) => textOf(bytes, span))).toEqual(['{"id":"a"}', '{"id":"b"}']);
  });
});

describe("The beginning of a value", () => {
  const unit = fc.oneof(
    fc.constantFrom("a", "é", "漢", "😀", '"', "\\", "\n", "\u0000", "\ud83d", "\ude00"),
    fc.string({ unit: "grapheme", maxLength: 1 }),
  );
  const escapeOf = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const escaped = (text: string) => `"${text.split("").map(escapeOf).join("")}"`;

  const spanOf = (value: string) => ({ start: 5, end: 5 + Buffer.byteLength(value) });

  it("is a prefix of the whole, wherever it is cut", () => {
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 40 }), fc.nat(45), fc.boolean(), (text, charsMax, isEscaped) => {
        const json = isEscaped ? escaped(text) : JSON.stringify(text);
        const starts = (value: string) => beginningOf(Buffer.from(`{"a":${value}}`), spanOf(value), charsMax);
        expect(starts(json)).toBe(text.slice(0, charsMax));
        expect(starts(`[${json}, 1]`)).toBe(`[${json}, 1]`.slice(0, charsMax));
      }),
      { numRuns: 1_000 },
    );
  });

  it("does not convert the rest to text", () => {
    const bytes = Buffer.from(`"${"é".repeat(1_000_000)}"`);
    let chars = 0;
    const counted = Object.assign(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), {
      toString: (...args: Parameters<Buffer["toString"]>) => {
        const text = bytes.toString(...args);
        chars += text.length;
        return text;
      },
    });
    expect(beginningOf(counted as Buffer, { start: 0, end: bytes.length }, 1_000)).toBe("é".repeat(1_000));
    expect(chars).toBe(1_000);
  });
});

describe("The elements of an array", () => {
  const all = async (text: string) => [...((await elementsOf(text)) ?? [])].map(stringOf);

  it.each([
    ["a small one", [1, "a", { b: [2] }, null]],
    ["an empty one", []],
    ["one of very many", Array.from({ length: 200_000 }, (_, n) => (n % 3 ? n : `é${n}`))],
    [
      "one with elements of any size",
      [1, "x".repeat(limits.jsonPieceBytes), 2, "y".repeat(limits.jsonThreadBytes), [3]],
    ],
  ])("are given with their original text: %s", async (_, array) => {
    const elements = array.map((element) => JSON.stringify(element));
    const given = await all(`[ ${elements.join(" , ")} ]`);
    expect(given.length).toBe(elements.length);
    expect(given.every((element, at) => element === elements[at])).toBe(true);
  });

  it.each(["{}", "1", "[1", '{"a":[1]}'])("are not given for %s", async (text) => {
    expect(await elementsOf(text)).toBeUndefined();
  });

  it("are made on demand", async () => {
    const text = `[${"1,".repeat(500_000)}1]`;
    const made = vi.spyOn(Buffer.prototype, "toString");
    const [first, second] = (await elementsOf(text))!;
    expect([first, second]).toEqual(["1", "1"]);
    expect(made.mock.calls.length).toBeLessThan(10);
  });
});
