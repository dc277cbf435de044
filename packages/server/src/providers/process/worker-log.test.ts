import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { HiddenTexts } from "../../domain/workers/log-line.js";
import { limits } from "../../limits/index.js";
import { WorkerLog } from "./worker-log.js";

let directory: string;
let path: string;
let log: WorkerLog;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: 1_790_000_000_000 });
  directory = mkdtempSync(join(tmpdir(), "millrace-log-"));
  path = join(directory, "worker.log");
  log = new WorkerLog(path);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  rmSync(directory, { recursive: true });
});
/** The stored lines without their times and pipes. */
const written = () => readFileSync(path, "utf8").replaceAll(/^\d{16} [12] /gm, "");
/** The stored lines with their pipes, but without their times. */
const piped = () => readFileSync(path, "utf8").replaceAll(/^\d{16} /gm, "");

describe("A worker's log", () => {
  it("joins lines that come in pieces, each pipe separately", () => {
    log.write("stdout", "one ");
    log.write("stderr", "oh");
    log.write("stdout", "line\ntwo");
    log.write("stderr", " no\n");
    log.close();
    expect(piped()).toBe("1 one line\n2 oh no\n1 two\n");
  });

  it("gives each line its own time, later than the one before, even while the clock stands still or is set back a little", () => {
    log.write("stdout", "one\ntwo\n");
    vi.setSystemTime(Date.now() - 2_000);
    log.write("stdout", "three\n");
    vi.setSystemTime(Date.now() - 3_600_000);
    log.write("stdout", "four\n");
    log.close();
    const times = readFileSync(path, "utf8")
      .match(/^\d{16}/gm)
      ?.map(Number) as number[];
    const first = 1_790_000_000_000_000;
    expect(times).toEqual([first, first + 1, first + 2, first - 3_602_000_000]);
  });

  it("never contains the worker's secret, nor does its tail", () => {
    const own = new WorkerLog(path, ["s3cret"]);
    own.write("stdout", "token=s3");
    own.write("stdout", "cret&s3cret\nnow s3cret");
    expect(own.tail()).toBe("token=****&****\nnow ****");
    own.close();
    expect(written()).toBe("token=****&****\nnow ****\n");
  });

  it("never contains texts that it was told to hide, of which it remembers the newest", () => {
    const own = new WorkerLog(path, ["s3cret"]);
    for (let n = 0; n <= limits.logSecretsMax; n++) own.hide(`<${n}>`);
    own.write("stdout", `s3cret <0> <1> <${limits.logSecretsMax}>\n`);
    own.close();
    expect(written()).toBe("**** <0> **** ****\n");
  });

  it("does not search dropped lines for hidden texts, nor convert secrets to JSON for each line", () => {
    const own = new WorkerLog(path, ["s3cret"]);
    for (const secret of ['a"b', "other"]) own.hide(secret);
    const [searched, escaped] = [vi.spyOn(HiddenTexts.prototype, "mask"), vi.spyOn(JSON, "stringify")];
    own.write("stdout", Array.from({ length: limits.logLinesPerSecondMax + 500 }, (_, n) => `a"b${n}\n`).join(""));
    expect([searched.mock.calls.length, escaped.mock.calls.length]).toEqual([limits.logLinesPerSecondMax, 0]);
    own.close();
    expect(written()).toMatch(/^\*{4}0\n.*\[500 more lines in that second\]\n$/s);
  });

  it("accepts Windows line ends", () => {
    log.write("stdout", "a\r\nb\rc\n");
    log.close();
    expect(written()).toBe("a\nb\rc\n");
  });

  it("does not count a line of the other pipe as a repeat", () => {
    log.write("stdout", "a\n");
    log.write("stderr", "a\n");
    log.close();
    expect(piped()).toBe("1 a\n2 a\n");
  });

  it("reports a repeating line, and lines left out, after a while even if no other line follows", () => {
    log.write("stdout", "a\n");
    log.write("stdout", "a\na\n");
    log.tellCounts();
    log.flush();
    expect(written()).toBe("a\n");
    vi.setSystemTime(Date.now() + limits.logRepeatsToldMs);
    log.tellCounts();
    log.flush();
    expect(written()).toBe("a\n[the line before came 2 more times]\n");
    log.write("stdout", Array.from({ length: limits.logLinesPerSecondMax + 5 }, (_, n) => `${n}\n`).join(""));
    vi.setSystemTime(Date.now() + 1_000);
    log.tellCounts();
    log.flush();
    expect(written()).toMatch(/\[5 more lines in that second\]\n$/);
  });

  it("writes lines soon after they came, by itself", async () => {
    log.write("stdout", "here\n");
    await vi.waitFor(() => expect(written()).toBe("here\n"));
  });

  it("counts lines that repeat", () => {
    log.write("stdout", "a\na\na\nb\nb\n");
    log.close();
    expect(written()).toBe("a\n[the line before came 2 more times]\nb\n[the line before came once more]\n");
  });

  it("counts lines that come too fast, and goes on in the next second", () => {
    const lines = (from: number, count: number) => Array.from({ length: count }, (_, n) => `${from + n}\n`).join("");
    log.write("stdout", lines(0, limits.logLinesPerSecondMax + 500));
    vi.setSystemTime(Date.now() + 1_000);
    log.write("stdout", "later\n");
    log.close();
    const kept = written().trimEnd().split("\n");
    expect(kept).toHaveLength(limits.logLinesPerSecondMax + 2);
    expect(kept.slice(-2)).toEqual(["[500 more lines in that second]", "later"]);
  });

  it("reports how many lines it left out, even if no line follows", () => {
    log.write("stdout", Array.from({ length: limits.logLinesPerSecondMax + 5 }, (_, n) => `${n}\n`).join(""));
    log.close();
    expect(written()).toContain("[5 more lines in that second]");
  });

  it("cuts lines that are too long, even if they never end", () => {
    log.write("stdout", `${"x".repeat(limits.logLineBytesMax + 5)}\n`);
    for (let n = 0; n < 100; n++) log.write("stderr", "y".repeat(10_000));
    log.close();
    for (const line of written().split("\n")) expect(line.length).toBeLessThanOrEqual(limits.logLineBytesMax);
  });

  it("keeps two files of a bounded size, whatever the output", () => {
    let second = 0;
    vi.spyOn(Date, "now").mockImplementation(() => second * 1_000);
    for (let n = 0; n < 1_500; n++) {
      if (n % 25 === 0) second++; // slower than a flood, of which lines are only counted
      log.write("stdout", `${n}${"x".repeat(limits.logLineBytesMax - 10)}\n`);
      if (n % 50 === 0) log.flush();
    }
    log.close();
    expect(readdirSync(directory).sort()).toEqual(["worker.log", "worker.log.1"]);
    for (const file of readdirSync(directory)) {
      expect(statSync(join(directory, file)).size).toBeLessThanOrEqual(limits.logFileBytesMax);
    }
  });

  it("remembers the last lines with content, and an incomplete line", () => {
    log.write("stdout", Array.from({ length: 50 }, (_, n) => `line ${n}\n\n`).join(""));
    log.write("stderr", "and then");
    expect(log.tail().split("\n")).toEqual(["line 46", "line 47", "line 48", "line 49", "and then"]);
    log.write("stderr", "z".repeat(limits.logLineBytesMax));
    expect(log.tail().length).toBeLessThanOrEqual(limits.logTailBytes);
    log.close();
  });

  it("continues in the existing file", () => {
    log.write("stdout", "before\n");
    log.close();
    const next = new WorkerLog(path);
    next.write("stdout", "after\n");
    next.close();
    expect(written()).toBe("before\nafter\n");
  });
});
