import { PassThrough } from "node:stream";
import type { Pod } from "kubernetes-types/core/v1.js";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { realTime } from "../../clock.js";
import { limits } from "../../limits/index.js";
import { type Cluster, ClusterAway } from "./api-server/cluster.js";
import { workerLabel } from "./pod.js";
import { PodWatch } from "./pod-watch.js";

type Streaming = Parameters<Cluster["stream"]>[1];

let watch: PodWatch;
let told: string[];
let lists: (string[] | Error)[];
let streams: { readonly stream: PassThrough; readonly call: Streaming }[];
beforeEach(() => {
  [told, lists, streams] = [[], [], []];
  vi.spyOn(realTime, "sleep").mockImplementation(() => new Promise((over) => setTimeout(over, 1)));
  const ask = async () => {
    const next = lists.shift() ?? [];
    if (next instanceof Error) throw next;
    return { metadata: { resourceVersion: `after-${next.join("")}` }, items: next.map(pod) };
  };
  const stream = async (_path: string, call: Streaming) => {
    const opened = new PassThrough();
    opened.on("error", () => {});
    call.signal.addEventListener("abort", () => opened.destroy(new Error("aborted")));
    streams.push({ stream: opened, call });
    return opened;
  };
  watch = new PodWatch({ ask, stream } as unknown as Cluster, "/pods", "ours", {
    changed: ({ workerId }) => told.push(`changed ${workerId}`),
    removed: ({ workerId }) => told.push(`removed ${workerId}`),
    reached: (isReached, why) => told.push(isReached ? "reached" : `away: ${why}`),
  });
});
afterEach(() => {
  watch.close();
  vi.restoreAllMocks();
});

const pod = (name: string): Pod => ({ metadata: { name, uid: name, labels: { [workerLabel]: name } } });
const say = (type: string, object: object) => streams.at(-1)?.stream.write(`${JSON.stringify({ type, object })}\n`);
const opened = (count: number) => vi.waitFor(() => expect(streams).toHaveLength(count));

it("Pods are listed, and watched from there on with bookmarks and a limit of silence", async () => {
  lists = [["a", "b"]];
  watch.begin();
  await opened(1);
  expect(streams[0]?.call).toMatchObject({
    query: { resourceVersion: "after-ab", allowWatchBookmarks: true, timeoutSeconds: 240 },
    silenceMs: limits.podWatchSilenceMs,
  });
  say("BOOKMARK", { metadata: {} });
  say("ADDED", pod("c"));
  say("DELETED", pod("a"));
  await vi.waitFor(() => expect(told).toEqual(["changed a", "changed b", "changed c", "removed a"]));
  expect(watch.get("a")).toBeUndefined();
});

it("A watch that ends in its time is followed by one from its last bookmark; pods are told again, and not listed", async () => {
  lists = [["a", "b"]];
  watch.begin();
  await opened(1);
  say("MODIFIED", { ...pod("a"), metadata: { ...pod("a").metadata, resourceVersion: "7" } });
  say("DELETED", pod("b"));
  say("BOOKMARK", { metadata: { resourceVersion: "9" } });
  streams[0]?.stream.end();
  await opened(2);
  expect(streams[1]?.call).toMatchObject({ query: { resourceVersion: "9" } });
  expect(told).toEqual(["changed a", "changed b", "changed a", "removed b", "changed a"]);
  say("ERROR", { code: 410 });
  lists = [["c"]];
  await opened(3);
  expect(told.slice(5)).toEqual(["removed a", "changed c"]);
});

it("A watch that breaks is followed by a list", async () => {
  lists = [["a"], ["b"]];
  watch.begin();
  await opened(1);
  say("BOOKMARK", { metadata: { resourceVersion: "9" } });
  streams[0]?.stream.destroy(new Error("reset"));
  await opened(2);
  expect(streams[1]?.call).toMatchObject({ query: { resourceVersion: "after-b" } });
});

it("A version that the cluster has forgotten is no trouble: pods are listed again, and those that went are told", async () => {
  lists = [["a", "b"], ["b"]];
  watch.begin();
  await opened(1);
  say("ERROR", { code: 410 });
  await opened(2);
  expect(told).toEqual(["changed a", "changed b", "removed a", "changed b"]);
  expect(streams[1]?.call).toMatchObject({ query: { resourceVersion: "after-b" } });
});

it("A watch that outlives its time is opened again", async () => {
  vi.spyOn(realTime, "abortAfter").mockImplementation(() => AbortSignal.timeout(50));
  lists = [["a"], ["a"]];
  watch.begin();
  await opened(2);
  expect(streams[0]?.stream.destroyed).toBe(true);
});

it("That the cluster is away is told once, and that it is back", async () => {
  const away = new ClusterAway("away", "it does not answer");
  lists = [away, away, ["a"]];
  watch.begin();
  await opened(1);
  expect(told).toEqual(["away: it does not answer", "changed a", "reached"]);
});
