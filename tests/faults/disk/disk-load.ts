import { limits } from "../../../packages/server/src/limits/index.js";
import type { Puppet } from "../../e2e/puppet.js";
import type { Target } from "../../e2e/wire.js";
import { call, until } from "../../harness.js";
import type { Random } from "../random.js";
import type { Word } from "./acknowledged.js";

const clients = 16;
const takenMax = 8;
const heldMax = 24;
/** Some texts are stored in pieces. They are few, because each power cut writes them again. */
const inPiecesBytes = limits.storedPieceBytes + 100_000;

interface Load {
  readonly server: Target;
  readonly endpoint: string;
  readonly worker: Puppet;
  readonly jobs: number;
  readonly random: Random;
  /** Called with each acknowledgement as soon as it is heard. */
  readonly hear: (word: Word) => void;
}

interface Given {
  readonly id: string;
  readonly input: { readonly n: number; readonly fate: "return" | "raise" | "cancel" };
}

/** Submits, takes, streams, settles and cancels jobs, many at once, until all its jobs have ended. */
export async function loadDisk(load: Load): Promise<void> {
  const toEnd: string[] = [];
  const ended = new Set<string>();
  const over = new AbortController();
  let submitted = 0;
  const sender = async () => {
    while (submitted < load.jobs) toEnd.push(...(await submitOne(load, submitted++)));
  };
  const send = async () => {
    await Promise.all(Array.from({ length: clients }, sender));
    await until(() => toEnd.every((job) => ended.has(job)), 120_000);
  };
  await Promise.all([send().finally(() => over.abort()), workAll(load, ended, over.signal)]);
}

/** Submits a job, and cancels it if that is its fate; resolves with its id if a worker is to end it. */
async function submitOne({ server, endpoint, random, hear }: Load, n: number): Promise<string[]> {
  const key = random.chance(0.3) ? `key-${n}-${random.next()}` : undefined;
  const fate = n % 30 === 0 ? "return" : random.pick(["return", "return", "return", "raise", "cancel"]);
  const body = { input: { n, fate, text: "x".repeat(n % 120 === 60 ? inPiecesBytes : random.whole(0, 4_000)) } };
  const headers: Record<string, string> = key === undefined ? {} : { "idempotency-key": key };
  const made = await call(server, "POST", `/v2/${endpoint}/run`, body, headers);
  if (made.status !== 200) throw new Error(`run: ${made.status} ${JSON.stringify(made.body)}`);
  const job: string = made.body.id;
  hear({ of: "submit", job, key });
  if (fate !== "cancel") return [job];
  const { body: cancelled } = await call(server, "POST", `/v2/${endpoint}/cancel/${job}`);
  if (cancelled.status === "CANCELLED") hear({ of: "cancel", job });
  return [];
}

/** Takes jobs, and works on many at once. */
async function workAll(load: Load, ended: Set<string>, signal: AbortSignal): Promise<void> {
  const work: Promise<void>[] = [];
  while (!signal.aborted) {
    if (work.length >= heldMax) await Promise.all(work.splice(0));
    const url = load.worker.takeUrl(true).replace("/job-take/", "/job-take-batch/");
    const path = `${url}&batch_size=${load.random.whole(1, takenMax)}`;
    const taken = await load.worker.call("GET", path, undefined, { signal }).catch(() => undefined);
    if (taken?.status !== 200) continue;
    for (const given of taken.body as Given[]) work.push(workOnOne(load, given).then(() => void ended.add(given.id)));
  }
  await Promise.all(work);
}

async function workOnOne({ worker, random, hear }: Load, { id: job, input: { n, fate } }: Given): Promise<void> {
  hear({ of: "take", job });
  // Either call may win the race. The report is sent in any case, so that the worker does not count as stuck.
  if (fate === "cancel") return void (await worker.done(job, { output: "late" }));
  for (let left = random.whole(0, 2); left > 0; left--) {
    const output = JSON.stringify(`${n}.${left}${"y".repeat(random.whole(0, 500))}`);
    if ((await worker.chunk(job, `{"output":${output}}`)).status === 200) hear({ of: "chunk", job, output });
  }
  const outputBytes = n % 120 === 90 ? inPiecesBytes : random.whole(0, 8_000);
  const output = fate === "return" ? JSON.stringify({ n, text: "z".repeat(outputBytes) }) : undefined;
  const said = await worker.done(job, output === undefined ? { error: "raised" } : `{"output":${output}}`);
  if (said.status === 200) hear({ of: "settle", job, output });
}
