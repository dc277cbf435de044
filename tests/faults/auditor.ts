import type { Ledger, Submission } from "./clients.js";
import type { Run } from "./scene.js";
import type { Act } from "./villain.js";

/** What a campaign came to. The lists hold a sentence for each thing that must not be. */
export interface Report {
  readonly acknowledged: number;
  readonly completed: number;
  readonly failed: number;
  /** Runs beyond a job's first: each has a lost worker or a lost result to show for it. */
  readonly runsAgain: number;
  /** Acknowledged, and not in a final state at the end. */
  readonly lost: readonly string[];
  /** Run by two workers at the same time. */
  readonly doubleHeld: readonly string[];
  /** Run again though nothing was lost. */
  readonly needless: readonly string[];
  /** A final state that is not what the job came to, or that did not stay. */
  readonly wrong: readonly string[];
}

interface Evidence {
  readonly ledger: Ledger;
  readonly runs: readonly Run[];
  readonly acts: readonly Act[];
}

/** Compares what was acknowledged with what is stored, and with what ran. */
export function audit(evidence: Evidence): Report {
  const jobs = evidence.ledger.acknowledged();
  const runsOf = groupByJob(evidence.runs);
  const statuses = jobs.map(({ final }) => final && JSON.parse(final.text).status);
  const cases = jobs.map((submission) => ({ submission, runs: runsOf.get(submission.id ?? "") ?? [] }));
  return {
    acknowledged: jobs.length,
    completed: statuses.filter((status) => status === "COMPLETED").length,
    failed: statuses.filter((status) => status === "FAILED").length,
    runsAgain: cases.reduce((sum, { runs }) => sum + Math.max(0, runs.length - 1), 0),
    lost: jobs.filter(({ final }) => !final).map(({ key, id }) => `${key} (${id})`),
    doubleHeld: cases.flatMap(({ runs }) => overlaps(runs, evidence.acts)),
    needless: cases.flatMap(({ submission, runs }) => needlessRuns(submission, runs, evidence.acts)),
    wrong: [
      ...evidence.ledger.complaints,
      ...strayRuns(evidence),
      ...cases.flatMap(({ submission, runs }) => mistakes(submission, runs)),
    ],
  };
}

function groupByJob(runs: readonly Run[]): Map<string, Run[]> {
  const groups = new Map<string, Run[]>();
  for (const run of runs) groups.set(run.job, [...(groups.get(run.job) ?? []), run]);
  return groups;
}

/** Pairs of runs of one job of which the later began before the earlier was over. */
function overlaps(runs: readonly Run[], acts: readonly Act[]): string[] {
  return pairs(runs)
    .filter(([earlier, later]) => later.startedAt < heldUntil(earlier, acts))
    .map(([earlier, later]) => `${earlier.job} ran in ${told(earlier)} and in ${told(later)} at the same time`);
}

/** When a run was over: at its end, or when its process was stopped for good. Of others only the start is certain. */
function heldUntil(run: Run, acts: readonly Act[]): number {
  const ends = (act: Act) => act.pid === run.pid && act.at >= run.startedAt && /killed|frozen/.test(act.act);
  return run.endedAt ?? acts.find(ends)?.at ?? run.startedAt;
}

/**
 * A job may run again only if its worker was touched since the run before began, or if its result may be lost: a stock
 * worker throws one away when the server is not there, ours keeps it.
 */
function needlessRuns({ stage }: Submission, runs: readonly Run[], acts: readonly Act[]): string[] {
  const isReason = (act: Act, run: Run) =>
    (act.pid === run.pid && act.act.startsWith("worker")) || (stage.kind === "stock" && act.act === "server killed");
  const isExcused = ([earlier, later]: [Run, Run]) =>
    acts.some((act) => act.at >= earlier.startedAt && act.at <= later.startedAt && isReason(act, earlier));
  return neighbours(runs)
    .filter((pair) => !isExcused(pair))
    .map(([earlier, later]) => `${earlier.job} ran in ${told(earlier)}, and for no reason again in ${told(later)}`);
}

/** Runs of jobs that no client was told of: a key that became two jobs. */
function strayRuns({ ledger, runs }: Evidence): string[] {
  const idOf = new Map(ledger.submissions.map(({ key, id }) => [key, id]));
  return runs.filter(({ key, job }) => idOf.get(key) !== job).map(({ key, job }) => `${key} also ran as ${job}`);
}

/** What is wrong with the state a job ended in. */
function mistakes(submission: Submission, runs: readonly Run[]): string[] {
  if (!submission.final) return [];
  const { text, seenAt } = submission.final;
  const { status, output, error, workerId, retries } = JSON.parse(text);
  const name = `${submission.key} (${submission.id})`;
  const found: string[] = [];
  // the liar may have been given the job just before it spoke: then its word counted
  if (output?.liar !== undefined) return output.liar === workerId ? [] : [`${name} has another worker's word: ${text}`];
  if (runs.length > retries + 1) found.push(`${name} ran ${runs.length} times, and says retries ${retries}`);
  if (runs.some(({ startedAt }) => startedAt > seenAt)) found.push(`${name} ran after its end`);
  const raised = /raised by ([0-9a-f-]{36})/.exec(error ?? "")?.[1];
  if (status === "FAILED" && raised === undefined) {
    if (retries !== 2) found.push(`${name} failed for no reason of its own: ${text}`);
    return found;
  }
  const run = runs.find((each) => each.run === (raised ?? output?.run));
  const fate = { COMPLETED: "return", FAILED: "raise" }[status as string];
  if (fate !== submission.input.fate) found.push(`${name} was to ${submission.input.fate}: ${text}`);
  else if (run?.endedAt === undefined) found.push(`${name} shows a result that no run has given: ${text}`);
  else if (run.worker !== workerId) found.push(`${name} shows the result of ${run.worker}: ${text}`);
  return found;
}

const pairs = (runs: readonly Run[]) =>
  runs.flatMap((earlier, at) => runs.slice(at + 1).map((later): [Run, Run] => [earlier, later]));
const neighbours = (runs: readonly Run[]) => runs.slice(1).map((later, at): [Run, Run] => [runs[at]!, later]);
const told = ({ worker, startedAt, endedAt }: Run) => `${worker} (${startedAt} to ${endedAt ?? "its loss"})`;
