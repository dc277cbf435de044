import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HiddenTexts } from "../../domain/workers/log-line.js";
import { readLogFiles } from "../log-files/reading.js";
import type { Cluster } from "./api-server/cluster.js";
import { PodLog } from "./pod-log.js";

type Streaming = Parameters<Cluster["stream"]>[1];

const workerId = "worker00000001";
let logsDir: string;
/** What the kubelet has of the pod's log: seconds and text. */
let written: (readonly [second: number, text: string])[];
beforeEach(() => {
  logsDir = mkdtempSync(join(tmpdir(), "millrace-logs-"));
  written = [];
});
afterEach(() => rmSync(logsDir, { recursive: true }));

const stamp = (second: number) => new Date(Date.UTC(2026, 0, 1) + second * 1_000).toISOString();
/** A kubelet leaves out lines with earlier times, wherever they are. */
const stream = async (_path: string, { query }: Streaming) => {
  const since = Date.parse(String(query?.sinceTime ?? stamp(0)));
  const lines = written.map(([second, text]) => [stamp(second), text] as const);
  return Readable.from(
    lines.filter(([at]) => Date.parse(at) >= since).map(([at, text]) => Buffer.from(`${at} ${text}\n`)),
  );
};
let refused = 0;
/** A server keeps the log for a while: all that is there now. */
async function serverReads(): Promise<void> {
  const failing = refused;
  const cluster = {
    stream: (path: string, query: Streaming) => {
      if (refused-- > 0) throw new Error("the kubelet is away");
      return stream(path, query);
    },
  } as unknown as Cluster;
  const secrets = new HiddenTexts([]);
  const parts = { cluster, path: "/log", logsDir, workerId, uid: "u1", secrets, more: async () => [], isLate: true };
  const log = new PodLog(parts);
  if (failing === 0) await log.begun;
  log.end();
  await log.complete;
}
async function kept(): Promise<string[]> {
  const lines: string[] = [];
  const query = { tail: 1_000, signal: new AbortController().signal };
  for await (const some of readLogFiles(logsDir, workerId, query, () => true))
    lines.push(...some.map(({ text }) => text));
  return lines;
}

describe("A log that a server goes on with has each line once", () => {
  it.each<[string, ...(readonly [number, string])[][]]>([
    [
      "where nothing is special",
      [
        [1, "a"],
        [2, "b"],
      ],
      [[3, "c"]],
      [[4, "d"]],
    ],
    [
      "that its node has written with a clock 3 s behind meanwhile",
      [
        [10, "a"],
        [20, "b"],
      ],
      [
        [17, "c"],
        [18, "d"],
      ],
    ],
    [
      "that its node has written with a clock 56 s behind meanwhile",
      [
        [60, "a"],
        [61, "b"],
      ],
      [[5, "c"]],
    ],
    [
      "whose clock was set back before",
      [
        [10, "a"],
        [20, "b"],
        [17, "c"],
      ],
      [
        [18, "d"],
        [19, "e"],
      ],
      [[22, "f"]],
    ],
    [
      "whose clock was set back by much before",
      [
        [90, "a"],
        [95, "b"],
        [20, "c"],
      ],
      [[21, "d"]],
      [[22, "e"]],
    ],
    [
      "with the same words and the same time",
      [
        [10, "tick"],
        [10, "tick"],
        [10, "tick"],
      ],
      [
        [10, "tick"],
        [9, "tick"],
      ],
      [
        [9, "tick"],
        [11, "tick"],
      ],
    ],
  ])("%s", async (_, ...parts) => {
    for (const part of parts) {
      written.push(...part);
      await serverReads();
      expect(await kept()).toEqual(written.map(([, text]) => text));
    }
  });

  it("although it cannot be read at first", async () => {
    written.push([10, "a"], [20, "b"]);
    await serverReads();
    written.push([18, "c"]);
    refused = 2;
    await serverReads();
    expect(await kept()).toEqual(["a", "b", "c"]);
  });

  it("from the first later time on, where its kubelet has rotated what is kept away", async () => {
    written.push([10, "a"], [20, "b"]);
    await serverReads();
    written = [[30, "c"]];
    await serverReads();
    expect(await kept()).toEqual(["a", "b", "c"]);
  });
});
