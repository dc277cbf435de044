import type { Act } from "../acts/acts.js";
import type { Ledger, Submission } from "./ledger.js";
import type { Delivery } from "./receiver.js";
import type { Run } from "./run-journal.js";

/** The kinds of fault; each finding is a sentence. */
export const faults = ["lost", "doubleHeld", "needless", "wrong", "webhooks"] as const;
export type Fault = (typeof faults)[number];

/** The result of a round. */
export interface Report {
  readonly counts: Readonly<Record<string, number>>;
  /**
   * lost: acknowledged, and not in a final state at the end. doubleHeld: run by two workers at the same time. needless:
   * run again although nothing was lost. wrong: a state that does not match the job's runs, or that did not stay.
   * webhooks: a webhook that did not come, or that reported something else.
   */
  readonly faults: Readonly<Record<Fault, readonly string[]>>;
}

interface Evidence {
  readonly ledger: Ledger;
  readonly runs: readonly Run[];
  readonly acts: readonly Act[];
  readonly deliveries: readonly Delivery[];
  /** The lines of the servers' logs about a worker. */
  readonly said: (worker: string) => readonly string[];
}

interface Case {
  readonly submission: Submission;
  readonly runs: readonly Run[];
  readonly deliveries: readonly Delivery[];
}

/** Compares what was acknowledged with what is stored, what ran, and what the webhooks reported. */
export function audit(evidence: Evidence): Report {
  const { ledger, runs, acts, deliveries, said } = evidence;
  const jobs = ledger.acknowledged();
  const runsOf = grouped(runs, ({ job }) => job);
  const deliveriesOf = grouped(deliveries, ({ key }) => key);
  const cases: Case[] = jobs.map((submission) => ({
    submission,
    runs: runsOf.get(submission.id ?? "") ?? [],
    deliveries: deliveriesOf.get(submission.key) ?? [],
  }));
  return {
    counts: counts(evidence, cases),
    faults: {
      lost: jobs.filter(({ final }) => !final).map(({ key, id }) => `${key} (${id})`),
      doubleHeld: cases.flatMap((each) => overlaps(each.runs, acts)),
      needless: cases.flatMap((each) => needlessRuns(each, acts, said)),
      wrong: [...ledger.complaints, ...strayRuns(ledger, runs), ...cases.flatMap(mistakes)],
      webhooks: cases.flatMap(untold),
    },
  };
}

function grouped<T>(list: readonly T[], nameOf: (each: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const each of list) {
    const group = groups.get(nameOf(each));
    if (group) group.push(each);
    else groups.set(nameOf(each), [each]);
  }
  return groups;
}

function counts({ ledger, runs, deliveries }: Evidence, cases: readonly Case[]): Record<string, number> {
  const texts = cases.flatMap(({ submission }) => submission.final?.text ?? []);
  const ended = (status: string) => texts.filter((text) => JSON.parse(text).status === status).length;
  const isDropped = ({ key, word }: { key: string; word: string }) => !ledger.of(key)?.final?.text.includes(word);
  return {
    acknowledged: cases.length,
    COMPLETED: ended("COMPLETED"),
    FAILED: ended("FAILED"),
    CANCELLED: ended("CANCELLED"),
    TIMED_OUT: ended("TIMED_OUT"),
    "handler runs": runs.length,
    "runs beyond a job's first": cases.reduce((sum, each) => sum + Math.max(0, each.runs.length - 1), 0),
    "state changes seen": [...ledger.changes.values()].reduce((sum, count) => sum + count, 0),
    "webhooks due": cases.filter(({ submission }) => submission.webhook && submission.final).length,
    "webhooks received": deliveries.length,
    "late words dropped": ledger.lateWords.filter((each) => each.isThanked && isDropped(each)).length,
  };
}

/** Pairs of runs of one job in which the later began before the earlier was over. */
function overlaps(runs: readonly Run[], acts: readonly Act[]): string[] {
  return pairs(runs)
    .filter(([earlier, later]) => later.startedAt < heldUntil(earlier, acts))
    .map(([earlier, later]) => `${earlier.job} ran in ${told(earlier)} and in ${told(later)} at the same time`);
}

/**
 * When a run was over: at its end, or when its process was killed or frozen. For any other run only its start is
 * certain.
 */
function heldUntil(run: Run, acts: readonly Act[]): number {
  const ends = (act: Act) => act.pid === run.pid && act.at >= run.startedAt && /worker (killed|frozen)/.test(act.act);
  return run.endedAt ?? acts.find(ends)?.at ?? run.startedAt;
}

/** A run begins this long after its job was handed out, at the most: a stock worker starts a task for it first. */
const handedMs = 500;

/**
 * A job may run again only if its worker was harmed since the job was handed out, or if its result or the reply that
 * handed it out may be lost: without a server a stock worker drops its result, while ours keeps it.
 */
function needlessRuns({ submission: { stage }, runs }: Case, acts: readonly Act[], said: Evidence["said"]): string[] {
  const isReason = (act: Act, run: Run) =>
    (act.pid === run.pid && act.act.startsWith("worker")) || (stage.kind === "stock" && mayLoseWord(act));
  const isExcused = ([earlier, later]: [Run, Run]) =>
    acts.some(
      (act) => lastedUntil(act) >= earlier.startedAt - handedMs && act.at <= later.startedAt && isReason(act, earlier),
    );
  return neighbours(runs)
    .filter((pair) => !isExcused(pair))
    .map(
      ([earlier, later]) =>
        `${earlier.job} (${stage.kind}) ran in ${told(earlier)}, and for no reason again in ${told(later)}; ` +
        [meanwhile(earlier, later, acts), ...said(earlier.worker)].join("\n    "),
    );
}

const lastedUntil = ({ untilAt }: Act) => untilAt ?? Number.POSITIVE_INFINITY;

/** Other acts from shortly before one run until the next. */
function meanwhile(earlier: Run, later: Run, acts: readonly Act[]): string {
  const isNear = (act: Act) => lastedUntil(act) >= earlier.startedAt - handedMs && act.at <= later.startedAt;
  const near = acts.filter((act) => isNear(act) && act.pid === undefined);
  return `meanwhile: ${near.map(({ act, link, at }) => [act, link, at].filter(Boolean).join(" ")).join(", ")}`;
}

const mayLoseWord = ({ act, link }: Act) =>
  link === "workers" || link === "database" || /^(server|database|disk)/.test(act);

/** Runs of jobs whose ids no client was given: one key became two jobs. */
function strayRuns(ledger: Ledger, runs: readonly Run[]): string[] {
  return runs
    .filter(({ key, job }) => ledger.of(key)?.id !== job)
    .map(({ key, job }) => `${key} also ran as ${job}, or too late`);
}

/** Mistakes in a job's final state. */
function mistakes({ submission, runs }: Case): string[] {
  if (!submission.final) return [];
  const { text, seenAt } = submission.final;
  const { status, output, error, workerId, retries } = JSON.parse(text);
  const name = `${submission.key} (${submission.id})`;
  const found: string[] = [];
  // The liar may have been given the job just before its report: then the report counted.
  if (output?.liar !== undefined)
    return output.liar === workerId ? [] : [`${name} has the output of another worker's report: ${text}`];
  if (runs.length > retries + 1) found.push(`${name} ran ${runs.length} times, but its status says retries ${retries}`);
  const late = runs.find(({ startedAt }) => startedAt > seenAt);
  if (late) found.push(`${name} ran in ${told(late)}, after its end, which was seen at ${seenAt}: ${text}`);
  if (submission.cancel === "done" && status !== "CANCELLED") found.push(`${name} was cancelled, yet ended as ${text}`);
  if (status === "CANCELLED") {
    if (submission.cancel === undefined) found.push(`${name} was cancelled, though no client asked for it: ${text}`);
    return found;
  }
  // The last lines of a lost worker may be about another of its jobs.
  const isLoss = /^Each worker that ran this job was lost/.test(error ?? "");
  const raised = isLoss ? undefined : /raised by ([0-9a-f-]{36})/.exec(error ?? "")?.[1];
  if (status === "FAILED" && raised === undefined) {
    if (retries !== 2) found.push(`${name} failed without a reason: ${text}`);
    return found;
  }
  const run = runs.find((each) => each.run === (raised ?? output?.run));
  const fate = { COMPLETED: "return", FAILED: "raise" }[status as string];
  if (fate !== submission.input.fate) found.push(`${name} was to ${submission.input.fate}: ${text}`);
  else if (run?.endedAt === undefined) found.push(`${name} shows a result that no run produced: ${text}`);
  else if (run.worker !== workerId) found.push(`${name} shows the result of ${run.worker}: ${text}`);
  return found;
}

/**
 * Mistakes in a job's webhooks: at least one for its final state, all with one id, signed, and reporting what is
 * stored.
 */
function untold({ submission, deliveries }: Case): string[] {
  const { key, final, webhook, input } = submission;
  if (webhook === undefined || final === undefined) return [];
  if (deliveries.length === 0) return [`${key} ended, and its webhook never came`];
  const found: string[] = [];
  if (new Set(deliveries.map(({ id }) => id)).size > 1) found.push(`${key} had webhooks of several ids`);
  if (deliveries.some(({ isSigned }) => !isSigned)) found.push(`${key} had a webhook with a wrong signature`);
  const wanted = sorted({ ...JSON.parse(final.text), input, webhook });
  const other = deliveries.find(({ body }) => sorted(JSON.parse(body)) !== wanted);
  if (other) found.push(`${key} ended as ${final.text}, and its webhook said ${other.body}`);
  return found;
}

const sorted = (body: object) => JSON.stringify(Object.entries(body).sort(([a], [b]) => a.localeCompare(b)));
const pairs = (runs: readonly Run[]) =>
  runs.flatMap((earlier, at) => runs.slice(at + 1).map((later): [Run, Run] => [earlier, later]));
const neighbours = (runs: readonly Run[]) => runs.slice(1).map((later, at): [Run, Run] => [runs[at]!, later]);
const told = ({ worker, startedAt, endedAt }: Run) => `${worker} (${startedAt} to ${endedAt ?? "its loss"})`;
