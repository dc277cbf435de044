import type { FastifyReply, FastifyRequest } from "fastify";
import type { Signal } from "../../clock.js";
import { isFinal, type JobReport, type JsonText } from "../../domain/jobs/job.js";
import { errorIn, errorOfEnd, jobExpired, serviceStopping } from "../../domain/jobs/openai-error.js";
import { Refusal } from "../../errors.js";
import { elementsOf, type Pieced, startsWith, stringOf, wholeOf } from "../../json/json.js";
import { limits } from "../../limits/index.js";
import { awaitEnd } from "../../operations/jobs/await-end.js";
import { noRoom, wholeJob } from "../../operations/jobs/lend-status.js";
import { readChunks } from "../../operations/jobs/read-chunks.js";
import type { Parts } from "../../operations/needs.js";
import { sendJson } from "../shared/replies/replies.js";
import { sendLentReply } from "../shared/replies/send-lent.js";
import { sendError } from "./event-reply.js";

/**
 * How much of a job's output its client received: all of it, part of it, or an error, after which we stop listening.
 */
export type Heard = "all" | "part" | "error";

/** Waits for a job's result and sends it. */
export async function sendResult(
  parts: Parts,
  request: FastifyRequest,
  reply: FastifyReply,
  jobId: string,
  gone: Signal,
): Promise<Heard> {
  try {
    const job = await awaitEnd(parts, request.endpoint, jobId, gone);
    if (gone.aborted) reply.hijack();
    else if (!isFinal(job.status)) sendError(reply, serviceStopping);
    else await send(parts, request, reply, job, gone);
    return isFinal(job.status) ? "all" : "part";
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== "JOB_NOT_FOUND") throw error;
    sendError(reply, jobExpired);
    return "all";
  }
}

async function send(
  parts: Parts,
  { endpoint }: FastifyRequest,
  reply: FastifyReply,
  found: JobReport,
  gone: Signal,
): Promise<void> {
  if (gone.aborted) return void reply.hijack();
  const { job, output, share: own } = await wholeJob(parts, endpoint, found, gone);
  let share = own;
  // room for a large reply and the values that were made whole; asked for while no other room is held
  const makeRoom = async (bytes = 2 * limits.outputBytesMax) => {
    share = await parts.shares.ask(endpoint.ownerNo, bytes, gone);
    if (!share) throw noRoom();
    return share;
  };
  try {
    const failed = errorOfEnd(job);
    if (failed) return void sendError(reply, failed);
    const pieces = await resultOf(parts, job, output, makeRoom);
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    if (bytes <= limits.errorCharsMax) {
      const text = pieces.map(stringOf).join("");
      const error = errorIn(JSON.parse(text));
      return void (error ? sendError(reply, error) : sendJson(reply, text));
    }
    const { release } = share ?? (await makeRoom(bytes));
    await sendLentReply(parts, reply, { pieces, release, isWanted: () => parts.shares.isWanted });
  } finally {
    share?.release();
  }
}

/** The job's output; a list of one without its brackets. If a worker streamed unasked, the output is in its chunks. */
async function resultOf(
  parts: Parts,
  job: JobReport,
  output: Pieced | undefined,
  makeRoom: () => Promise<unknown>,
): Promise<Pieced> {
  if (output && !startsWith(output[0] as JsonText, "[")) return output;
  const [first, second] = (output && (await elementsOf(await wholeOf(output)))) ?? [];
  if (output && first !== undefined) return second === undefined ? [first] : output;
  const chunks = await readChunks(parts, job, makeRoom);
  if (chunks.length === 1) return chunks[0] as Pieced;
  return chunks.length === 0
    ? ["{}"]
    : ["[", ...chunks.flatMap((chunk, n) => (n === 0 ? chunk : [",", ...chunk])), "]"];
}
