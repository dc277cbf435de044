import { randomUUID } from "node:crypto";
import type { Leader } from "../machine/processes.js";
import type { Surroundings } from "./surroundings.js";

/** Limits the choice to the last runs: for a job that ended long ago, clients have already read its state. */
const recentRuns = 40;
const patienceMs = 5_000;

/**
 * A worker reports on a job that another worker holds, that is over, or that it held when it was killed. The server
 * must answer 200 and change nothing. Workers that are alive may report; a report in a frozen worker's name would count
 * as its sign of life.
 */
export async function tellLate(
  { random, ledger, journal, acts }: Surroundings,
  living: readonly Leader[],
  dead: readonly Leader[],
): Promise<void> {
  const last = journal.all().slice(-recentRuns);
  const open = last.filter(({ endedAt }) => endedAt === undefined);
  const job = random.pick(open.length > 0 && random.chance(0.7) ? open : last);
  const submission = job && ledger.of(job.key);
  // A worker whose keeper is gone may have been restarted with another secret.
  const orphans = new Set(acts.all.flatMap(({ act, pid }) => (act === "worker orphaned" ? [pid] : [])));
  const mayLie = ({ pid, endpoint }: Leader) => endpoint === submission?.stage.endpoint && !orphans.has(pid);
  const liars = [...living.filter(({ worker }) => worker !== job?.worker), ...dead].filter(mayLie);
  if (!job || liars.length === 0) return;
  const holder = liars.find(({ worker }) => worker === job.worker);
  const { worker, env, pid } = holder ?? random.pick(liars);
  const url = (env.RUNPOD_WEBHOOK_POST_OUTPUT ?? "").replace("$RUNPOD_POD_ID", worker).replace("$ID", job.job);
  const word = randomUUID();
  const body = JSON.stringify({ output: { key: job.key, liar: worker, word } });
  acts.note("word told late", { pid });
  try {
    const told = await fetch(`${url}&isStream=false`, {
      method: "POST",
      body,
      signal: AbortSignal.timeout(patienceMs),
    });
    await told.arrayBuffer();
    if (![200, 503].includes(told.status)) ledger.complaints.push(`a result was answered ${told.status}`);
    ledger.lateWords.push({ key: job.key, word, isThanked: told.status === 200 });
  } catch {
    // The server is away at the moment.
  }
}
