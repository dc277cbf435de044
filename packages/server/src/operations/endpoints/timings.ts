import type { Endpoint, EndpointSettings } from "../../domain/endpoints/endpoint.js";
import { type PastJob, type Replayed, replay } from "../../domain/scaling/replay.js";
import { coldStart, percentiles } from "../../domain/workers/cold-start.js";
import { invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import type { JobTimes } from "../../store/index.js";
import { turns } from "../../turns.js";
import type { Needs } from "../needs.js";
import { iso } from "../show-resources.js";

const waitOf = ({ queuedAt, takenAt }: JobTimes): number => Math.max(0, takenAt - queuedAt);
const runOf = ({ takenAt, finishedAt }: JobTimes): number | undefined =>
  finishedAt === undefined ? undefined : Math.max(0, finishedAt - takenAt);

/** How long an endpoint's newest jobs waited and ran, in milliseconds, as a whole and over time. */
export async function showTimings({ reader, clock }: Needs<"reader" | "clock">, endpoint: Endpoint) {
  const jobs = await reader.recent({ endpointNo: endpoint.no, limit: limits.timingsOf, now: clock.now() });
  if (turns.isOver) await turns.take([endpoint.ownerNo, endpoint.no]);
  const waits = percentiles(jobs.map(waitOf));
  const runs = percentiles(runsOf(jobs));
  return {
    jobs: jobs.length,
    ...(waits === undefined ? {} : { waitMs: waits }),
    ...(runs === undefined ? {} : { executionMs: runs }),
    buckets: bucketsOf(jobs),
  };
}

const runsOf = (jobs: readonly JobTimes[]): number[] => jobs.flatMap((job) => runOf(job) ?? []);

function bucketsOf(jobs: readonly JobTimes[]) {
  const times = jobs.map(({ queuedAt }) => queuedAt);
  const from = times.reduce((least, at) => Math.min(least, at), Number.POSITIVE_INFINITY);
  const until = times.reduce((most, at) => Math.max(most, at), 0);
  const sizeMs = Math.max(1, Math.ceil((until - from + 1) / limits.timingBuckets));
  const buckets = Map.groupBy(jobs, ({ queuedAt }) => Math.floor((queuedAt - from) / sizeMs));
  return [...buckets]
    .sort(([a], [b]) => a - b)
    .map(([n, own]) => {
      const runs = percentiles(runsOf(own));
      return {
        at: iso(from + n * sizeMs),
        jobs: own.length,
        failed: own.filter(({ status }) => status === "FAILED" || status === "TIMED_OUT").length,
        waitMs: percentiles(own.map(waitOf))?.p50 ?? 0,
        ...(runs === undefined ? {} : { executionMs: runs.p50 }),
      };
    });
}

/** The settings that a what-if may change. */
export type ReplayedSettings = Partial<
  Pick<EndpointSettings, "scalerType" | "scalerValue" | "workersMin" | "workersMax" | "idleTimeout">
>;

/** An endpoint's newest jobs, submitted again to its scaler: with its settings, and with some of them changed. */
export async function replayScaling(
  needs: Needs<"reader" | "registry" | "clock" | "replays">,
  endpoint: Endpoint,
  changed: ReplayedSettings,
) {
  const { workersMin, workersMax } = { ...endpoint.settings, ...changed };
  if (workersMin > workersMax) throw invalid("'workersMin' must not be more than 'workersMax'.");
  if (needs.replays.waitingOf(endpoint.ownerNo) >= limits.replaysPerOwner)
    throw new Refusal("UNAVAILABLE", "Several what-ifs of yours wait already: ask again in a second.", {
      retryAfterSeconds: 1,
    });
  return needs.replays.do(endpoint.ownerNo, async () => {
    const workers = Math.max(workersMin, endpoint.settings.workersMin, Math.min(limits.replayedJobs, workersMax));
    const limit = Math.min(limits.replayedJobs, Math.ceil(limits.replayedSteps / Math.max(1, workers)));
    const now = needs.clock.now();
    const [recent, startMs] = await Promise.all([
      needs.reader.recent({ endpointNo: endpoint.no, limit, now }),
      usualStartMs(needs, endpoint),
    ]);
    const jobs = recent.map((job) => pastOf(job, now));
    jobs.sort((a, b) => a.at - b.at);
    const facts = { slots: needs.registry.slots(endpoint), startMs };
    const run = (settings: EndpointSettings) => inTurns(replay(jobs, settings, facts), endpoint);
    return {
      jobs: jobs.length,
      present: await run(endpoint.settings),
      changed: await run({ ...endpoint.settings, ...changed }),
    };
  });
}

const pastOf = (job: JobTimes, now: number): PastJob => ({
  at: job.queuedAt,
  runMs: runOf(job) ?? Math.max(0, now - job.takenAt),
});

async function usualStartMs({ registry }: Needs<"registry">, endpoint: Endpoint): Promise<number> {
  const rows = await registry.workersListed(endpoint.no, limits.workersListedMax);
  const usual = percentiles(rows.flatMap((row) => coldStart(row).totalMs ?? []))?.p50 ?? limits.replayStartMs;
  return Math.max(1, usual);
}

async function inTurns(steps: Generator<void, Replayed>, { ownerNo, no }: Endpoint): Promise<Replayed> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    if (turns.isOver) await turns.take([ownerNo, no]);
  }
}
