import { topics } from "../../bell.js";
import type { JsonText, Verdict } from "../../domain/jobs/job.js";
import type { WorkerChange } from "../../domain/workers/worker-life.js";
import {
  beginningOf,
  type Checked,
  checkBatch,
  checkDigested,
  checkPart,
  checkWord,
  jsonOf,
  memberOf,
  ofNoPart,
  type ReceivedText,
  type Span,
  splitChunk,
  textOf,
  withParts,
} from "../../json/json.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { turns } from "../../turns.js";
import type { Needs } from "../needs.js";
import { closeWorker, noteCall } from "../workers/worker-life.js";
import { beginNext } from "./begin-job.js";
import { announceEnd } from "./change-job.js";

type Finishing = Needs<"jobs" | "chunks" | "reader" | "clock" | "bell" | "registry" | "emit" | "here">;

/** A message from a worker as received; undefined for a body over the hard limit, which was not kept. */
export type Word = ReceivedText | undefined;

/**
 * Takes a worker's final result for a job, or its progress (worker protocol: `job-done`). If the worker no longer holds
 * the job, the result is dropped and the worker still gets a success.
 */
export async function finishJob(needs: Finishing, worker: LiveWorker, jobId: string, word: Word): Promise<void> {
  await noteCall(needs, worker, {});
  const bytes = word?.length ?? 0; // the check may take the buffer away
  await conclude(needs, worker, jobId, word && (await checkWord(word)), bytes);
}

async function conclude(
  needs: Finishing,
  worker: LiveWorker,
  jobId: string,
  checked: Checked | undefined,
  bytes: number,
): Promise<void> {
  const said = checked && isObject(checked) ? checked : undefined;
  if (said && memberOf(said, "status") === "IN_PROGRESS") return noteProgress(needs, worker, jobId, said);
  const wantsEnd = said !== undefined && memberOf(said, "stopPod") === true; // read now: the verdict takes the bytes
  await settle(needs, worker, jobId, checked ? verdict(checked, bytes) : tooLarge());
  if (wantsEnd) await closeWorker(needs, worker, "it asked for a fresh worker after this job");
}

/** Several final results in one request, each judged on its own (worker protocol: `job-done-batch`). */
export async function finishJobs(needs: Finishing, worker: LiveWorker, word: Buffer | undefined): Promise<void> {
  await noteCall(needs, worker, {});
  const batch = word && (await checkBatch(word));
  if (!batch?.scan.ok) return;
  const one = async ({ start, end }: Span) => {
    const entry = await checkPart(batch.bytes.subarray(start, end));
    const id = idOf(entry);
    if (id !== undefined) await conclude(needs, worker, id, entry, end - start);
  };
  const lane = [needs.registry.endpointByNo(worker.row.endpointNo)?.ownerNo ?? 0, worker.row.endpointNo] as const;
  for (const group of groupsOf(batch.scan.elements.slice(0, limits.doneBatchMax))) {
    if (turns.isOver) await turns.take(lane);
    await Promise.all(group.map(one));
  }
}

/** Splits a batch into groups, by bytes and by number: a large one at once would fill the event loop and the writer. */
function groupsOf(spans: readonly Span[]): Span[][] {
  const groups: Span[][] = [];
  let bytes = 0;
  for (const span of spans) {
    bytes += span.end - span.start;
    const group = groups.at(-1);
    if (group && bytes <= limits.doneGroupBytes && group.length < limits.doneGroupMax) group.push(span);
    else {
      groups.push([span]);
      bytes = span.end - span.start;
    }
  }
  return groups;
}

function idOf(checked: Checked): string | undefined {
  const id = isObject(checked) ? memberOf(checked, "id") : undefined;
  return typeof id === "string" && id.length <= limits.idCharsMax ? id : undefined;
}

/** How a repeated chunk is recognised: by its name, or by `once`, which stores it unless it was stored before. */
export type Repeats =
  | { readonly name: string }
  | { readonly once: (digest: string, store: () => Promise<void>) => Promise<void> };

/** Stores a piece of a job's output (worker protocol: `job-stream`), split if it is over 1 MB. */
export async function appendChunk(
  needs: Finishing,
  worker: LiveWorker,
  jobId: string,
  word: Word,
  repeats: Repeats = { once: (_, store) => store() },
): Promise<void> {
  await noteCall(needs, worker, {});
  if (word === undefined) return;
  if ("name" in repeats) return storeChunk(needs, worker, jobId, await checkWord(word), repeats.name);
  const checked = await checkDigested(word);
  await repeats.once(checked.digest, () => storeChunk(needs, worker, jobId, checked));
}

async function storeChunk(
  needs: Finishing,
  worker: LiveWorker,
  jobId: string,
  checked: Checked,
  name?: string,
): Promise<void> {
  if (!isObject(checked) || !checked.scan.ok) return;
  const span = checked.scan.members.get("output");
  if (!span || span.end - span.start > limits.outputBytesMax) return; // an error comes again with the final result
  const metrics = metricsOf(checked);
  const pieces = await splitChunk(checked.bytes, span, limits.chunkBytesMax);
  const isCut = pieces.length > 1;
  const rows = pieces.map((output, at) => {
    const said = isCut ? withParts(metrics, at, pieces.length) : metrics;
    return said === undefined ? { output } : { output, metrics: said };
  });
  const held = await needs.chunks.append({ ...heldBy(worker, jobId), chunks: rows, name });
  if (!held) return;
  needs.bell.ring(topics.job(jobId));
  if (worker.row.outputAt === undefined) noteFirst(needs, worker, { by: "output", outputAt: needs.clock.now() });
}

/** A chunk's metrics; undefined if they are not an object or too long, because cut JSON is not JSON. */
function metricsOf({ bytes, scan }: Checked): string | undefined {
  const span = scan.ok ? scan.members.get("metrics") : undefined;
  if (!span || bytes[span.start] !== 0x7b || span.end - span.start > limits.chunkMetricsBytesMax) return undefined;
  return ofNoPart(textOf(bytes, span));
}

async function settle(needs: Finishing, worker: LiveWorker, jobId: string, last: Verdict): Promise<void> {
  const now = needs.clock.now();
  const settled = await needs.jobs.settle({ ...heldBy(worker, jobId), verdict: last, now });
  worker.busyAt = now;
  noteDone(needs, worker, now);
  await beginNext(needs, worker, now);
  if (settled) announceEnd(needs, worker.row.endpointNo, settled);
  else needs.bell.ring("workers"); // it may just have stopped a job as it was told
}

/** Notes that a result is stored. A worker that has finished one job did not fail at start. */
function noteDone({ registry, emit }: Finishing, worker: LiveWorker, now: number): void {
  if (worker.row.lastDoneAt !== undefined) {
    worker.row = { ...worker.row, lastDoneAt: now };
    return;
  }
  noteFirst({ registry, emit }, worker, { by: "done", lastDoneAt: now, outputAt: worker.row.outputAt ?? now });
}

/** Not awaited: the job need not wait until this is on disk. */
function noteFirst({ registry, emit }: Needs<"registry" | "emit">, worker: LiveWorker, first: WorkerChange): void {
  const message = "a worker's first output could not be recorded";
  registry.changeWorker(worker, first).catch((error) => emit({ type: "server.warning", message, error }));
}

async function noteProgress(needs: Finishing, worker: LiveWorker, jobId: string, said: Checked): Promise<void> {
  const span = said.scan.ok ? said.scan.members.get("output") : undefined;
  if (!span || said.bytes.length > limits.outputBytesMax) return;
  const noted = await needs.jobs.progress({ ...heldBy(worker, jobId), progress: jsonOf(said.bytes, span) });
  if (noted) needs.bell.ring(topics.job(jobId));
}

const isObject = (checked: Checked) => checked.scan.ok && checked.scan.kind === "object";
const tooLarge = (): Verdict =>
  failed(`The worker's result is larger than the limit of ${limits.outputBytesMax} bytes.`);
const failed = (error: string, output?: JsonText): Verdict => ({ status: "FAILED", error, output });

/** Judges a final result: a non-null error means FAILED; a null output is no output. */
export function verdict(checked: Checked, bytes: number): Verdict {
  const { scan } = checked;
  if (bytes > limits.outputBytesMax) return tooLarge();
  if (!scan.ok) return failed(`The worker's result is not JSON: ${scan.why}, at position ${scan.at}.`);
  if (scan.kind !== "object") return failed("The worker's result is not a JSON object.");
  const member = (name: string) => {
    const span = scan.members.get(name);
    return span && textOf(checked.bytes, { start: span.start, end: span.start + 4 }) !== "null" ? span : undefined;
  };
  const errorSpan = member("error");
  const outputSpan = member("output");
  const output = outputSpan && jsonOf(checked.bytes, outputSpan);
  if (!errorSpan) return { status: "COMPLETED", output };
  const sentence = beginningOf(checked.bytes, errorSpan, limits.errorCharsMax);
  return failed(sentence === "" ? "The worker reported an error without a text." : sentence, output);
}

const heldBy = ({ row }: LiveWorker, jobId: string) => ({ endpointNo: row.endpointNo, jobId, workerNo: row.no });
