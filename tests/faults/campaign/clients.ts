import { setTimeout as sleep } from "node:timers/promises";
import type { Ledger, Submission } from "../audit/ledger.js";
import type { Receiver } from "../audit/receiver.js";
import type { Random } from "../random.js";
import type { Input, Stage, Target } from "../scene.js";
import type { Fleet } from "./fleet.js";

interface Client {
  readonly fleet: Fleet;
  readonly stages: readonly Stage[];
  readonly random: Random;
  readonly name: string;
  readonly ledger: Ledger;
  readonly receiver: Receiver;
  readonly signal: AbortSignal;
}

/**
 * For one endpoint: a slow endpoint must neither hold up the others nor collect a backlog that takes minutes to drain.
 * A stock worker takes one job a second.
 */
const unfinishedMax = { own: 20, stock: 5 } as const;
const patienceMs = 5_000;
const replaysAtOnce = 20;
/** The server is away, or its disk is full: the client tries again. */
const passing = [503, 507];

/** Submits jobs until told to stop. It waits for each answer, so that every key has one. */
export async function runClient(client: Client): Promise<void> {
  const { stages, random, name, ledger, signal } = client;
  for (let n = 0; !signal.aborted; n++) {
    const open = stages.filter((stage) => ledger.unfinished(stage).length < unfinishedMax[stage.kind]);
    if (open.length > 0) await submitOne(client, `${name}-${n}`, random.pick(open));
    await sleep(random.whole(10, 100));
  }
}

async function submitOne(client: Client, key: string, stage: Stage): Promise<void> {
  const { random, ledger, receiver } = client;
  const ms = random.chance(0.1) ? random.whole(1_000, 2_500) : random.whole(0, 300);
  const input: Input = { key, ms, fate: random.chance(0.1) ? "raise" : "return" };
  const webhook = random.chance(0.3) ? receiver.url(key) : undefined;
  const submission: Submission = { key, stage, input, webhook, ids: new Set() };
  ledger.add(submission);
  // Sometimes sends two at once, like a client that lost patience with its first request.
  await Promise.all(Array.from({ length: random.chance(0.1) ? 2 : 1 }, () => submit(client, submission)));
  if (random.chance(0.04)) await cancel(client, submission);
}

/** Sends the same key until there is an answer. Some attempts hang up while the server works on them. */
async function submit({ fleet, random, ledger }: Client, submission: Submission): Promise<void> {
  for (;;) {
    const hangsUp = random.chance(0.1);
    const reply = await run(fleet.front(random), submission, hangsUp ? random.whole(0, 15) : patienceMs);
    if (reply?.status === 200) return ledger.acknowledge(submission, JSON.parse(reply.text).id);
    if (reply && !passing.includes(reply.status))
      ledger.complaints.push(`${submission.key} was answered ${reply.status} ${reply.text}`);
    await sleep(random.whole(50, 250));
  }
}

/** Asks once to cancel a job, which may be over by then. */
async function cancel({ fleet, random, ledger }: Client, submission: Submission): Promise<void> {
  submission.cancel = "asked";
  const path = `/v2/${submission.stage.endpoint}/cancel/${submission.id}`;
  const reply = await post(fleet.front(random), path, "", {}, patienceMs);
  if (reply?.status === 200) submission.cancel = "done";
  else if (reply && ![400, ...passing].includes(reply.status))
    ledger.complaints.push(`cancelling ${submission.key} was answered ${reply.status} ${reply.text}`);
}

/** Sends every key once more at the end: each must give the same job as before. */
export async function replay(server: Target, ledger: Ledger): Promise<void> {
  const left = ledger.acknowledged();
  const one = async () => {
    for (let submission = left.pop(); submission; submission = left.pop()) await sendAgain(server, ledger, submission);
  };
  await Promise.all(Array.from({ length: replaysAtOnce }, one));
}

async function sendAgain(server: Target, ledger: Ledger, submission: Submission): Promise<void> {
  const reply = await run(server, submission, patienceMs);
  if (reply?.status === 200) ledger.acknowledge(submission, JSON.parse(reply.text).id);
  else ledger.complaints.push(`${submission.key} was answered ${reply?.status} ${reply?.text} when it was sent again`);
}

function run(server: Target, { stage, key, input, webhook }: Submission, withinMs: number) {
  const body = JSON.stringify(webhook === undefined ? { input } : { input, webhook });
  return post(server, `/v2/${stage.endpoint}/run`, body, { "idempotency-key": key }, withinMs);
}

async function post(
  server: Target,
  path: string,
  body: string,
  headers: Readonly<Record<string, string>>,
  withinMs: number,
) {
  try {
    const reply = await fetch(server.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${server.key}`, ...headers },
      body,
      signal: AbortSignal.timeout(withinMs),
    });
    return { status: reply.status, text: await reply.text() };
  } catch {
    return undefined; // the answer was cut off: the client knows nothing
  }
}
