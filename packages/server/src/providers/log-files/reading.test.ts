import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LogLine } from "../../domain/workers/log-line.js";
import { limits } from "../../limits/index.js";
import type { LogQuery } from "../../provider.js";
import { LogFile } from "./log-file.js";
import { pruneLogs } from "./pruning.js";
import { readLogFiles } from "./reading.js";
import { storedLine } from "./stored-line.js";

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "millrace-logs-"));
  path = join(directory, "w.log");
});
afterEach(() => rmSync(directory, { recursive: true }));

const signal = new AbortController().signal;
const stored = (n: number, text = `line ${n}`) => `${storedLine(1_790_000_000_000_000 + n, "stdout", text)}\n`;
const many = (from: number, count: number, text?: string) =>
  Array.from({ length: count }, (_, n) => stored(from + n, text && `${text}${from + n}`)).join("");
async function read(query: Partial<LogQuery> = {}): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  for await (const some of readLogFiles(directory, "w", { signal, ...query }, () => true)) lines.push(...some);
  return lines;
}
const texts = async (query?: Partial<LogQuery>) => (await read(query)).map(({ text }) => text);

describe("A worker's log files", () => {
  it("are read as one, the older one first, over many blocks", async () => {
    const long = "x".repeat(10_000);
    writeFileSync(`${path}.1`, many(0, 100, long));
    writeFileSync(path, many(100, 100, long));
    expect(await texts()).toEqual(Array.from({ length: 200 }, (_, n) => `${long}${n}`));
    expect(await texts({ tail: 130 })).toEqual(Array.from({ length: 130 }, (_, n) => `${long}${70 + n}`));
    expect(await texts({ sinceUs: 1_790_000_000_000_050, tail: 1_000 })).toHaveLength(150);
  });

  it("are read from their end, only as far as requested", async () => {
    writeFileSync(`${path}.1`, many(0, 100, "x".repeat(10_000)));
    writeFileSync(path, many(100, 100, "x".repeat(10_000)));
    const search = { bytesLeft: limits.logBlockBytes + 1 };
    const lines = await texts({ search });
    expect(search.bytesLeft).toBe(1 - limits.logBlockBytes);
    expect(lines.at(-1)).toMatch(/x199$/);
    expect(lines.length).toBeLessThan((2 * limits.logBlockBytes) / 10_000);
    expect(await texts({ search })).toEqual([]);
  });

  it("that were written before lines had times are readable, in order, with a time close to the file's", async () => {
    writeFileSync(path, "one\ntwo\n\nfour\n");
    utimesSync(path, 1_790_000_000, 1_790_000_000);
    const lines = await read();
    expect(lines.map(({ text }) => text)).toEqual(["one", "two", "", "four"]);
    const times = lines.map(({ atUs }) => atUs);
    expect(times).toEqual([...new Set(times)].sort((one, other) => one - other));
    for (const at of times) expect(Math.abs(at - 1_790_000_000_000_000)).toBeLessThan(100);
  });

  it("with an incomplete last line return it once it is complete", async () => {
    writeFileSync(path, `${stored(1)}${stored(2).slice(0, -3)}`);
    expect(await texts()).toEqual(["line 1"]);
    const reader = readLogFiles(directory, "w", { signal, follow: true }, () => false);
    expect((await reader.next()).value).toHaveLength(1);
    const next = reader.next();
    appendFileSync(path, stored(2).slice(-3));
    expect((await next).value).toMatchObject([{ text: "line 2" }]);
    await reader.return(undefined);
  });

  it("are followed from one into the next, with no line lost or repeated", async () => {
    const file = new LogFile(path);
    const heard: string[] = [];
    let isOver = false;
    const reading = (async () => {
      for await (const some of readLogFiles(directory, "w", { signal, follow: true }, () => isOver))
        heard.push(...some.map(({ text }) => text));
    })();
    const text = "y".repeat(15_000);
    for (let n = 0; n < 1_000; n += 50) {
      file.append(many(n, 50, text));
      // The older file still exists when its reader reaches it.
      await vi.waitFor(() => expect(heard.length).toBeGreaterThanOrEqual(n - 100), { timeout: 10_000 });
    }
    isOver = true;
    await reading;
    expect(heard).toEqual(Array.from({ length: 1_000 }, (_, n) => `${text}${n}`));
    file.close();
  });

  it("that were rotated twice while their reader was away are read from the oldest line left", async () => {
    writeFileSync(path, stored(1));
    const reader = readLogFiles(directory, "w", { signal, follow: true }, () => false);
    await reader.next();
    renameSync(path, `${path}.1`);
    writeFileSync(path, stored(2));
    renameSync(path, `${path}.1`);
    writeFileSync(path, stored(3));
    expect([(await reader.next()).value, (await reader.next()).value]).toMatchObject([
      [{ text: "line 2" }],
      [{ text: "line 3" }],
    ]);
    await reader.return(undefined);
  });

  it("that are deleted while they are followed end nothing", async () => {
    writeFileSync(path, stored(1));
    let isOver = false;
    const reader = readLogFiles(directory, "w", { signal, follow: true }, () => isOver);
    await reader.next();
    rmSync(path);
    isOver = true;
    expect((await reader.next()).done).toBe(true);
  });

  it("stay within their bound even when writing resumes", () => {
    const half = "z".repeat(limits.logFileBytesMax * 0.6);
    for (let n = 0; n < 3; n++) {
      const file = new LogFile(path); // as from another keeper each time
      file.append(half);
      file.close();
    }
    for (const name of readdirSync(directory))
      expect(statSync(join(directory, name)).size).toBeLessThanOrEqual(limits.logFileBytesMax);
  });
});

describe("Logs that are no longer needed", () => {
  const write = (name: string, bytes: number, age: number) => {
    writeFileSync(join(directory, name), "x".repeat(bytes));
    utimesSync(join(directory, name), 1_790_000_000 - age, 1_790_000_000 - age);
  };
  const left = () => readdirSync(directory).sort();

  it("are deleted with their workers' rows, both files of each, and nothing else in the folder is", async () => {
    write("gone.log", 1, 0);
    write("gone.log.1", 1, 0);
    write("ended.log", 1, 90_000);
    write("lives.log", 1, 90_000);
    write("notes.txt", 1, 90_000);
    await pruneLogs(directory, (id) => (id === "gone" ? "unknown" : id === "ended" ? "ended" : "lives"));
    expect(left()).toEqual(["ended.log", "lives.log", "notes.txt"]);
  });

  it("are deleted, those of the longest ended workers first, until all are within their bound", async () => {
    write("lives.log", 400, 900);
    write("old.log", 100, 500);
    write("old.log.1", 400, 800);
    write("older.log", 300, 600);
    write("young.log", 300, 100);
    await pruneLogs(directory, (id) => (id === "lives" ? "lives" : "ended"), 1_250);
    expect(left()).toEqual(["lives.log", "old.log", "old.log.1", "young.log"]);
    await pruneLogs(directory, (id) => (id === "lives" ? "lives" : "ended"), 100);
    expect(left()).toEqual(["lives.log"]);
  });
});
