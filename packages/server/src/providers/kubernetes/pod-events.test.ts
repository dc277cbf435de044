import { afterEach, expect, it, vi } from "vitest";
import { realTime } from "../../clock.js";
import { limits } from "../../limits/index.js";
import { type Cluster, ClusterAway, ClusterRefusal } from "./api-server/cluster.js";
import { ofAutoscalers, PodEvents } from "./pod-events.js";

afterEach(() => void vi.restoreAllMocks());

/** A cluster with these events: by reason, of which pod and how long ago. */
function clusterWith(events: Record<string, readonly (readonly [uid: string, agoMs: number])[]>) {
  const ask = vi.fn(async (_method: string, _path: string, { query }: { query: { fieldSelector: string } }) => {
    const [, reason = ""] = /reason=(\w+)/.exec(query.fieldSelector) ?? [];
    const items = (events[reason] ?? []).map(([uid, agoMs]) => ({
      metadata: {},
      involvedObject: { uid },
      message: `${reason} of ${uid}`,
      lastTimestamp: new Date(realTime.wallMs() - agoMs).toISOString(),
    }));
    return { items, metadata: {} };
  });
  return { ask, ups: new PodEvents({ ask } as unknown as Cluster, "workers", ofAutoscalers) };
}

it("An autoscaler's last word counts, for as long as a node may take", async () => {
  const { ups } = clusterWith({
    NotTriggerScaleUp: [
      ["first", 1_000],
      ["both", 60_000],
      ["again", 1_000],
    ],
    TriggeredScaleUp: [
      ["both", 2_000],
      ["again", 60_000],
      ["old", limits.scaleUpValidMs + 1_000],
    ],
    Nominated: [
      ["karpenter", 1_000],
      ["stock-out", 60_000],
    ],
    FailedScheduling: [["stock-out", 1_000]],
  });
  expect(await ups.of("first")).toMatchObject({ isAsked: false, words: "NotTriggerScaleUp of first" });
  expect(await ups.of("both")).toMatchObject({ isAsked: true });
  expect(await ups.of("again")).toMatchObject({ isAsked: false });
  expect(await ups.of("stock-out")).toMatchObject({ isAsked: false });
  expect(await ups.of("karpenter")).toMatchObject({ isAsked: true });
  for (const uid of ["old", "other"]) expect(await ups.of(uid)).toBeUndefined();
});

it("Events are read once for all pods, and rarely where they may not be", async () => {
  const now = vi.spyOn(realTime, "monotonicMs").mockReturnValue(0);
  const { ask, ups } = clusterWith({ TriggeredScaleUp: [["a", 0]] });
  await Promise.all(["a", "b", "c"].map((uid) => ups.of(uid)));
  expect(ask).toHaveBeenCalledTimes(5); // one for each kind
  now.mockReturnValue(limits.scaleUpsMs);
  ask.mockRejectedValue(new ClusterAway("the cluster does not answer"));
  expect(await ups.of("a")).toMatchObject({ isAsked: true });
  now.mockReturnValue(2 * limits.scaleUpsMs);
  ask.mockRejectedValue(new ClusterRefusal(403, "Forbidden", "no"));
  await ups.of("a");
  const before = ask.mock.calls.length;
  now.mockReturnValue(limits.scaleUpsBarredMs);
  await ups.of("a");
  expect(ask).toHaveBeenCalledTimes(before);
});
