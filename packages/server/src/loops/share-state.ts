import { limits } from "../limits.js";
import type { Needs } from "../operations/needs.js";
import type { SharedStore } from "../store.js";
import type { Leases } from "./leases.js";
import type { Loop } from "./loop.js";

type Sharing = Needs<"registry" | "clock" | "place" | "emit" | "gate" | "bell">;

/** The loops that have one owner among the servers. */
export const ownedLoops = ["scale", "watch-workers", "deliver-webhooks", "expire-jobs", "time-out-jobs"] as const;

/**
 * Once a second a server says that it lives and what it has heard of workers, keeps its leases, and learns which hosts there
 * are; then it reads again what the others may have changed.
 */
export function shareStateLoop(
  needs: Sharing,
  shared: SharedStore,
  leases: Leases,
  followTime: (aheadMs: number) => void,
): Loop {
  const { registry, clock, place, emit, gate, bell } = needs;
  let saidAt = 0;
  /** Endpoints whose requests wait here, as the others were told. */
  let waiting: ReadonlySet<string> = new Set();
  let isAway = false;
  let timeAt = clock.now() + timeEveryMs;

  async function beat(now: number): Promise<void> {
    const untilAt = now + limits.leaseMs;
    const signs = registry.signs(saidAt);
    const { hostNo } = place;
    const asked = leases.isResigned ? [] : ownedLoops;
    // a server that stops looks too silent to be given workers, and too lively to be lost with those it has
    const seenAt = leases.isResigned ? now - 2 * limits.leaseMs : now;
    const report = gate.report();
    const said = await shared.beat({
      hostNo,
      facts: { ...place.facts(), gate: report },
      now,
      seenAt,
      leases: asked,
      untilAt,
      signs,
    });
    // while the database was away we did not hear what workers said to other servers
    if (now - saidAt > limits.leaseMs) registry.hearAll(clock.now(), hostNo);
    saidAt = now;
    registry.hosts = said.hosts;
    const others = said.hosts.filter(({ no, seenAt }) => no !== hostNo && seenAt > now - limits.leaseMs);
    gate.hear(others.flatMap((host) => (host.gate ? [host.gate] : [])));
    const waits = new Set(Object.keys(report.endpoints).filter((no) => (report.endpoints[no]?.waiting ?? 0) > 0));
    // who decides how many workers there are looks at once
    if ([...waits].some((no) => !waiting.has(no))) bell.ringElsewhere("hosts");
    waiting = waits;
    // a new owner has to know what the one before it has written
    await registry.refresh();
    leases.hold(said.leases, untilAt - limits.beatMs);
  }

  async function look(now: number): Promise<void> {
    await beat(now);
    if (now < timeAt) return;
    timeAt = now + timeEveryMs;
    followTime(await aheadOf(shared));
  }

  return {
    name: "share-state",
    topics: ["hosts"],
    gapMs: limits.missGapMs,
    async tick(now) {
      try {
        await look(now);
        if (isAway) emit({ type: "server.warning", message: "the database answers again" });
        isAway = false;
      } catch (error) {
        leases.check();
        if (!isAway) emit({ type: "server.warning", message: "the database does not answer; trying on", error });
        isAway = true;
      }
      return now + limits.beatMs;
    },
  };
}

const timeEveryMs = 10_000;

/** How far the database's clock is ahead of this machine's, in milliseconds; half of the round trip is its error. */
export async function aheadOf(shared: SharedStore): Promise<number> {
  let best = { tripMs: Number.POSITIVE_INFINITY, ahead: 0 };
  for (let n = 0; n < 3; n++) {
    const [sentAt, startedAt] = [Date.now(), performance.now()];
    const there = await shared.time();
    const tripMs = performance.now() - startedAt;
    if (tripMs < best.tripMs) best = { tripMs, ahead: there - (sentAt + tripMs / 2) };
  }
  return Math.abs(best.ahead) <= best.tripMs ? 0 : best.ahead;
}
