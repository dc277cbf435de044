import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { realTime } from "../../clock.js";
import { HiddenTexts } from "../../domain/workers/log-line.js";
import { limits } from "../../limits/index.js";
import { readLogFiles } from "../log-files/reading.js";
import { type Cluster, ClusterRefusal } from "./api-server/cluster.js";
import { PodLog } from "./pod-log.js";

type Streaming = Parameters<Cluster["stream"]>[1];

const workerId = "worker00000001";
let logsDir: string;
let streams: { readonly stream: PassThrough; readonly query: Streaming["query"] }[];
let refusals: ClusterRefusal[];
let more: () => Promise<readonly string[]>;
let log: PodLog;
beforeEach(() => {
  vi.spyOn(realTime, "sleep").mockImplementation(() => new Promise((over) => setTimeout(over, 1)));
  logsDir = mkdtempSync(join(tmpdir(), "millrace-logs-"));
  [streams, refusals] = [[], []];
  const stream = async (_path: string, { query }: Streaming) => {
    const refusal = refusals.shift();
    if (refusal) throw refusal;
    const opened = new PassThrough();
    streams.push({ stream: opened, query });
    return opened;
  };
  const cluster = { stream } as unknown as Cluster;
  const secrets = new HiddenTexts(["a-secret-of-its-own"]);
  more = async () => [];
  log = new PodLog({
    cluster,
    path: "/log",
    logsDir,
    workerId,
    uid: "u1",
    secrets,
    more: () => more(),
    isLate: false,
  });
});
afterEach(async () => {
  log.leave();
  for (const { stream } of streams) stream.destroy();
  await log.complete;
  vi.restoreAllMocks();
  rmSync(logsDir, { recursive: true });
});

/** The stream of this number, from 1 on. */
const opened = (count: number) =>
  vi.waitFor(() => {
    expect(streams).toHaveLength(count);
    return streams[count - 1] as (typeof streams)[number];
  });
async function kept(): Promise<string[]> {
  const lines: string[] = [];
  const query = { tail: 100, signal: new AbortController().signal };
  for await (const some of readLogFiles(logsDir, workerId, query, () => true))
    lines.push(...some.map(({ text }) => text));
  return lines;
}

it("Lines that have one time are all kept, and once, although they come again", async () => {
  const at = "2026-01-01T00:00:01.5Z";
  const first = await opened(1);
  first.stream.end(`${at} a\n${at} b\n`);
  const second = await opened(2);
  expect(second.query).toMatchObject({ follow: true, sinceTime: "2026-01-01T00:00:01Z" });
  second.stream.end(`${at} a\n${at} b\n${at} c\n2026-01-01T00:00:01.4Z d\n`);
  await opened(3);
  expect(await kept()).toEqual(["a", "b", "c", "d"]);
});

it("A followed log that ends within a line is read on from its beginning; the last line of all may lack its end", async () => {
  const first = await opened(1);
  first.stream.end("2026-01-01T00:00:01Z one\n2026-01-01T00:00:02Z tw");
  const second = await opened(2);
  log.end();
  second.stream.end("2026-01-01T00:00:01Z one\n2026-01-01T00:00:02Z two\n");
  const last = await opened(3);
  expect(last.query).toMatchObject({ follow: false });
  last.stream.end("2026-01-01T00:00:02Z two\n2026-01-01T00:00:03Z three");
  await log.complete;
  expect(await kept()).toEqual(["one", "two", "three"]);
});

it("A kubelet that does not know the pod yet is asked again, and a log whose pod is gone is complete", async () => {
  const notFound = (message: string) => new ClusterRefusal(404, "NotFound", message);
  const first = await opened(1);
  refusals = [notFound("the server could not find the requested resource ( pods/log millrace-worker00000001)")];
  first.stream.end("2026-01-01T00:00:01Z one\n");
  const second = await opened(2);
  refusals = [notFound('pods "millrace-worker00000001" not found')];
  second.stream.end("2026-01-01T00:00:02Z two\n");
  await log.complete;
  expect(await kept()).toEqual(["one", "two"]);
});

it("A secret that another server has noted is masked before a line is stored, and lines wait until they are asked for", async () => {
  const first = await opened(1);
  more = () => Promise.reject(new Error("the database is away"));
  const at = "2026-01-01T00:00:01Z";
  first.stream.end(`${at} with s3cret\n`);
  const second = await opened(2);
  expect(await kept()).toEqual([]);
  more = async () => ["s3cret"];
  second.stream.end(`${at} with s3cret\n`);
  await opened(3);
  expect(await kept()).toEqual(["with ****"]);
});

it("A secret that a line's cut would split is masked", async () => {
  const first = await opened(1);
  const long = "é".repeat(limits.logLineBytesMax - 10);
  first.stream.end(`2026-01-01T00:00:01Z ${long}a-secret-of-its-own and more\n`);
  await opened(2);
  const [line = ""] = await kept();
  expect(line).not.toContain("a-secret");
  expect(line.startsWith("é".repeat(100))).toBe(true);
});
