import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "./random.js";
import type { Input, Stage, Target } from "./scene.js";

/** One thing a client wanted to have done, and what it was told. */
export interface Submission {
  readonly key: string;
  readonly stage: Stage;
  readonly input: Input;
  /** The job's id, once a 200 was read. */
  id?: string;
  /** Every id that any answer gave: there must be one. */
  readonly ids: Set<string>;
  /** The first final status body that was seen, and when. */
  final?: { readonly text: string; readonly seenAt: number };
}

/** What all clients did together. */
export class Ledger {
  readonly submissions: Submission[] = [];
  /** What a client could not make sense of: no answer of the contract's, or one that took back another. */
  readonly complaints: string[] = [];

  acknowledged(): Submission[] {
    return this.submissions.filter((each) => each.id !== undefined);
  }

  /** Those without a final state, of one endpoint or of all. */
  unfinished(stage?: Stage): Submission[] {
    const isHere = (each: Submission) => stage === undefined || each.stage === stage;
    return this.submissions.filter((each) => each.id !== undefined && each.final === undefined && isHere(each));
  }
}

interface Client {
  readonly server: Target;
  readonly stages: readonly Stage[];
  readonly random: Random;
  readonly name: string;
  readonly ledger: Ledger;
  readonly signal: AbortSignal;
}

/** Of one endpoint: a slow one must not hold up the others, nor gather what takes minutes to drain. */
const unfinishedMax = 20;
const patienceMs = 5_000;

/** Submits job after job until told to end; each is seen through, so that every key has an answer. */
export async function runClient(client: Client): Promise<void> {
  const { stages, random, name, ledger, signal } = client;
  for (let n = 0; !signal.aborted; n++) {
    const open = stages.filter((stage) => ledger.unfinished(stage).length < unfinishedMax);
    if (open.length > 0) await submitOne(client, `${name}-${n}`, random.pick(open));
    await sleep(random.whole(10, 100));
  }
}

async function submitOne(client: Client, key: string, stage: Stage): Promise<void> {
  const { random, ledger } = client;
  const ms = random.chance(0.1) ? random.whole(1_000, 2_500) : random.whole(0, 300);
  const input: Input = { key, ms, fate: random.chance(0.1) ? "raise" : "return" };
  const submission: Submission = { key, stage, input, ids: new Set() };
  ledger.submissions.push(submission);
  // two at once now and then, as a client does that lost patience with the first
  await Promise.all(Array.from({ length: random.chance(0.1) ? 2 : 1 }, () => submit(client, submission)));
}

/** Sends the same key again until there is an answer. Some tries hang up while the server is at it. */
async function submit({ server, random, ledger }: Client, submission: Submission): Promise<void> {
  for (;;) {
    const hangsUp = random.chance(0.1);
    const reply = await post(server, submission, hangsUp ? random.whole(0, 15) : patienceMs);
    if (reply?.status === 200) return acknowledge(ledger, submission, reply.text);
    if (reply && reply.status !== 503)
      ledger.complaints.push(`${submission.key} was answered ${reply.status} ${reply.text}`);
    await sleep(random.whole(50, 250));
  }
}

function acknowledge(ledger: Ledger, submission: Submission, text: string): void {
  const { id } = JSON.parse(text);
  submission.ids.add(id);
  submission.id ??= id;
  if (submission.ids.size > 1)
    ledger.complaints.push(`${submission.key} became two jobs: ${[...submission.ids].join(", ")}`);
}

/** Sends every key once more, when all is over: each must give the job it gave before. */
export async function replay(server: Target, ledger: Ledger): Promise<void> {
  for (const submission of ledger.acknowledged()) {
    const reply = await post(server, submission, patienceMs);
    if (reply?.status === 200) acknowledge(ledger, submission, reply.text);
    else
      ledger.complaints.push(`${submission.key} was answered ${reply?.status} ${reply?.text} when it was sent again`);
  }
}

async function post(server: Target, { stage, key, input }: Submission, withinMs: number) {
  try {
    const reply = await fetch(`${server.url}/v2/${stage.endpoint}/run`, {
      method: "POST",
      headers: { authorization: `Bearer ${server.key}`, "idempotency-key": key },
      body: JSON.stringify({ input }),
      signal: AbortSignal.timeout(withinMs),
    });
    return { status: reply.status, text: await reply.text() };
  } catch {
    return undefined; // no whole answer: the client knows nothing
  }
}
