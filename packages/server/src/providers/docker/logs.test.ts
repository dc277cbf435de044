import { Readable } from "node:stream";
import type Docker from "dockerode";
import { expect, it } from "vitest";
import { HiddenTexts, type LogLine } from "../../domain/workers/log-line.js";
import { limits } from "../../limits/index.js";
import type { LogQuery } from "../../provider.js";
import { withTurns } from "../../testing/turns-fixture.js";
import { containerLogs } from "./logs.js";

const startedAt = 1_790_000_000;
const never = new AbortController().signal;

/** A line of stdout, this many nanoseconds after the start. */
interface Line {
  readonly ns: number;
  readonly text: string;
}

function frameOf({ ns, text }: Line): Buffer {
  const at = new Date(startedAt * 1_000 + Math.floor(ns / 1e9) * 1_000).toISOString();
  const body = Buffer.from(`${at.replace(".000", `.${String(ns % 1e9).padStart(9, "0")}`)} ${text}\n`);
  const head = Buffer.alloc(8);
  head[0] = 1;
  head.writeUInt32BE(body.length, 4);
  return Buffer.concat([head, body]);
}

/** A container whose engine keeps these lines. */
function container(lines: readonly Line[]): Docker.Container {
  const nsOf = (since: string) => {
    const [seconds, fraction = "0"] = since.split(".");
    return (Number(seconds) - startedAt) * 1e9 + Number(fraction.padEnd(9, "0"));
  };
  const logs = async ({ since = "0", tail = lines.length }) =>
    Buffer.concat(
      lines
        .filter(({ ns }) => ns >= nsOf(since))
        .slice(-tail)
        .map(frameOf),
    );
  return { logs } as unknown as Docker.Container;
}

async function linesOf(
  of: Docker.Container,
  query: Partial<LogQuery> = {},
  secrets: readonly string[] = [],
): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  const contained = { workerId: "worker00000001", container: of, secrets: new HiddenTexts(secrets) };
  for await (const some of containerLogs(contained, "engine", { signal: never, ...query }, 0)) lines.push(...some);
  return lines;
}

it("a log of very many lines is parsed in turns with other work", async () => {
  const lines = Array.from({ length: 10 * limits.logFramesPerTurn }, (_, n) => ({ ns: n * 1_000_000, text: `${n}` }));
  const { value, waits } = await withTurns(() => linesOf(container(lines)));
  expect(value.map(({ text }) => text)).toEqual(lines.map(({ text }) => text));
  expect(waits).toBeGreaterThanOrEqual(10);
  const last = await linesOf(container(lines), { tail: 700 });
  expect(last.map(({ text }) => text)).toEqual(lines.slice(-700).map(({ text }) => text));
});

it("lines that are searched for many secrets are parsed a few in each turn", async () => {
  const secrets = Array.from({ length: 1_000 }, (_, n) => `secret-number-${n}`);
  const lines = Array.from({ length: 20 }, (_, n) => ({
    ns: n * 1_000_000,
    text: `${"x".repeat(8_000)}secret-number-7`,
  }));
  const { value, waits } = await withTurns(() => linesOf(container(lines), {}, secrets));
  expect(value).toHaveLength(20);
  expect(value.some(({ text }) => text.includes("secret-number-7"))).toBe(false);
  expect(waits).toBeGreaterThanOrEqual(10);
});

it("lines that came within one microsecond can be requested since the time shown for each of them", async () => {
  const lines = Array.from({ length: 20 }, (_, n) => ({ ns: 5_000_000 + n * 100, text: `line ${n}` }));
  const engines = container(lines);
  const all = await linesOf(engines);
  expect(all.map(({ text }) => text)).toEqual(lines.map(({ text }) => text));
  expect(new Set(all.map(({ atUs }) => atUs)).size).toBe(20);
  for (const [n, { atUs }] of all.entries()) {
    expect(await linesOf(engines, { sinceUs: atUs })).toEqual(all.slice(n));
    expect(await linesOf(engines, { sinceUs: atUs, tail: 2 })).toEqual(all.slice(n).slice(-2));
  }
});

/**
 * The lines that a follower receives from a container that has ended. Its engine sends `sent`, or the requested part of
 * `kept`.
 */
async function heard(kept: readonly Line[], { sent, tail }: { sent?: readonly Line[]; tail?: number }) {
  const stored = container(kept);
  const followed = {
    logs: async (options: { follow?: boolean }) => {
      const there = (await stored.logs(options as never)) as unknown as Buffer;
      return options.follow ? Readable.from([sent ? Buffer.concat(sent.map(frameOf)) : there]) : there;
    },
    inspect: async () => ({ State: { Running: false } }),
  } as unknown as Docker.Container;
  const contained = { workerId: "worker00000001", container: followed, secrets: new HiddenTexts([]) };
  const query = { signal: never, follow: true, ...(tail !== undefined && { tail }) };
  const texts: string[] = [];
  for await (const some of containerLogs(contained, "engine", query, startedAt * 1_000 + 5))
    texts.push(...some.map(({ text }) => text));
  return texts;
}

it("lines that an engine sends twice, because a flood has rotated its file, are shown once", async () => {
  const lines = Array.from({ length: 20 }, (_, n) => ({ ns: 5_000_000 + n * 100, text: `line ${n}` }));
  const sent = [...lines.slice(1, 15), ...lines.slice(8)];
  expect(await heard(lines.slice(0, 1), { sent })).toEqual(lines.map(({ text }) => text));
  const [early, late] = [
    { ns: 1_000_000, text: "a clock that was set back" },
    { ns: 40_000_000_000, text: "late" },
  ];
  expect(await heard([], { sent: [late, early] })).toEqual([late.text, early.text]);
});

it("a follower that wants no earlier lines gets the lines since its request, even if looking up the container took time", async () => {
  const lines = [
    { ns: 4_000_000, text: "before" },
    { ns: 6_000_000, text: "meanwhile" },
  ];
  expect(await heard(lines, { tail: 0 })).toEqual(["meanwhile"]);
});
