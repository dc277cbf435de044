import { realTime } from "../clock.js";
import { mayCall, type ServerAddress, type StartNote } from "../domain/hosts/server.js";
import type { GateReport } from "../domain/scaling/gate-report.js";
import { limits } from "../limits/index.js";
import type { LiveWorker, Needs, OtherServer } from "../operations/needs.js";
import type { Server, SharedStore } from "../store/index.js";
import { clusterComparison } from "./compare-clusters.js";
import type { Leases } from "./leases.js";
import type { Loop } from "./loop.js";

type Sharing = Needs<"registry" | "clock" | "here" | "emit" | "gate" | "bell" | "news">;

/**
 * Once a second, a server reports that it is alive and what it has heard from workers, renews its leases, and learns
 * which servers and hosts there are. Then it reads what other servers may have changed.
 */
export function shareStateLoop(
  needs: Sharing,
  shared: SharedStore,
  leases: Leases,
  followTime: (aheadMs: number) => void,
): Loop {
  const { registry, clock, here, emit, gate, bell, news } = needs;
  const clusters = here.clusters.map(({ name, no }) => ({ name, no }));
  const compareClusters = clusterComparison(needs);
  let saidAt = 0;
  /** The news last sent to the other servers. */
  let told: ReadonlySet<string> = new Set();
  let isAway = false;
  let timeAt = clock.now() + limits.databaseTimeMs;

  async function beat(now: number): Promise<void> {
    const untilAt = now + limits.leaseMs;
    const signs = registry.signs(saidAt);
    const asked = leases.isResigned ? [] : leases.names;
    // a stopping server seems silent long enough to be given no workers, but not so long that its own count as lost
    const seenAt = leases.isResigned ? now - 2 * limits.leaseMs : now;
    const report = gate.report();
    const { server } = here;
    const said = await shared.beat({
      report: {
        hostNo: here.hostNo,
        gate: report,
        clusters,
        changes: news.changes,
        starts: startsOf(registry.liveWorkers()),
        ...(server ? { address: server.address } : {}),
      },
      hosts: here.hosts(),
      now,
      seenAt,
      leases: asked,
      untilAt,
      signs,
    });
    // while the database was away, we missed what workers said to other servers
    if (now - saidAt > limits.leaseMs) registry.hearAll(clock.now(), here.tends);
    saidAt = now;
    registry.hosts = said.hosts;
    registry.servers = said.servers;
    await freeChanges(said.servers, now);
    const others = said.servers.filter(({ no, seenAt }) => no !== shared.serverNo && seenAt > now - limits.leaseMs);
    gate.hear(
      others.flatMap(({ gate }) => (gate ? [gate] : [])),
      server ? others.flatMap((other) => callable(other, server.address)) : [],
    );
    hearStarts(registry.liveWorkers(), others);
    compareClusters(others);
    news.hearElsewhere(new Map(others.map(({ no, changes = {} }) => [no, changes])));
    const tells = newsOf(report);
    // the server that scales looks at once, and so do servers whose requests wait for a worker
    if ([...tells].some((each) => !told.has(each))) bell.ringElsewhere("hosts");
    told = tells;
    // a new owner must know what the one before it has written
    await registry.refresh();
    leases.hold(said.leases, untilAt - limits.beatMs);
  }

  /** A server that is frozen while it makes a change must not hold up everybody else's. */
  async function freeChanges(servers: readonly Server[], now: number): Promise<void> {
    const silent = servers.filter(({ no, seenAt }) => {
      const silentMs = now - seenAt;
      return no !== shared.serverNo && silentMs > limits.changeSilenceMs && silentMs < limits.hostSilenceMs * 2;
    });
    if (silent.length > 0) await shared.freeChanges(silent.map(({ no }) => no));
  }

  async function look(now: number): Promise<void> {
    await beat(now);
    if (now < timeAt) return;
    timeAt = now + limits.databaseTimeMs;
    followTime(await aheadOf(shared));
  }

  return {
    name: "share-state",
    topics: ["hosts"],
    gapMs: limits.missGapMs,
    async tick(now) {
      try {
        await look(now);
        if (isAway) emit({ type: "server.warning", message: "the database is available again" });
        isAway = false;
      } catch (error) {
        if (!isAway) emit({ type: "server.warning", message: "the database does not answer; retrying", error });
        isAway = true;
      }
      return now + limits.beatMs;
    },
  };
}

/** What this server does to start workers: of each endpoint one first, as far as they are told. */
export function startsOf(workers: readonly LiveWorker[]): Record<string, StartNote> {
  const starting = workers.filter(({ doing }) => doing !== undefined);
  const firsts = new Map(starting.map((worker) => [worker.row.endpointNo, worker]));
  const told = [...new Set([...firsts.values(), ...starting])].slice(0, limits.startsToldMax);
  return Object.fromEntries(
    told.map(({ row, doing = "", fullSince }) => [
      row.no,
      { doing: doing.slice(0, limits.startWordsMax), ...(fullSince === undefined ? {} : { isFull: true }) },
    ]),
  );
}

/** Keeps what other servers do to start workers. */
function hearStarts(workers: readonly LiveWorker[], others: readonly Server[]): void {
  for (const worker of workers)
    worker.startElsewhere = others.map(({ starts }) => starts?.[worker.row.no]).find((start) => start !== undefined);
}

/** News for the other servers: the endpoints whose requests wait here, and the endpoints with a healthy worker. */
const newsOf = ({ endpoints, open = [] }: GateReport): Set<string> =>
  new Set([
    ...Object.keys(endpoints).flatMap((no) => ((endpoints[no]?.waiting ?? 0) > 0 ? [`waits ${no}`] : [])),
    ...open.map((no) => `open ${no}`),
  ]);

/** Another server as the gate knows it, if requests may be passed on to it. */
const callable = ({ no, address, gate }: Server, here: ServerAddress): OtherServer[] =>
  address && gate?.open && mayCall(address, here)
    ? [{ serverNo: no, host: address.host, port: address.port, open: new Set(gate.open) }]
    : [];

/**
 * How far the database's clock is ahead of this machine's, in ms, by the fastest of three round trips. Less than a
 * round trip counts as 0.
 */
export async function aheadOf(shared: SharedStore): Promise<number> {
  let best = { tripMs: Number.POSITIVE_INFINITY, ahead: 0 };
  for (let n = 0; n < 3; n++) {
    const [sentAt, startedAt] = [realTime.wallMs(), realTime.monotonicMs()];
    const there = await shared.time();
    const tripMs = realTime.monotonicMs() - startedAt;
    if (tripMs < best.tripMs) best = { tripMs, ahead: there - (sentAt + tripMs / 2) };
  }
  return Math.abs(best.ahead) <= best.tripMs ? 0 : best.ahead;
}
