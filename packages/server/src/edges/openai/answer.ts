import type { FastifyReply, FastifyRequest } from "fastify";
import type { Signal } from "../../clock.js";
import { isFinal, type JobReport } from "../../domain/jobs/job.js";
import { errorIn, errorOfEnd, jobExpired, serviceStopping } from "../../domain/jobs/openai-error.js";
import { Refusal } from "../../errors.js";
import { elementsOf } from "../../json/json.js";
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
  const { job, share: own } = await wholeJob(parts, endpoint, found, gone);
  let share = own;
  // room for the strings of a large reply and the bytes made from them; asked for while no other room is held
  const makeRoom = async (bytes = 2 * limits.outputBytesMax) => {
    share = await parts.shares.ask(endpoint.ownerNo, bytes, gone);
    if (!share) throw noRoom();
    return share;
  };
  try {
    const failed = errorOfEnd(job);
    if (failed) return void sendError(reply, failed);
    const text = await resultOf(parts, job, makeRoom);
    const error = isShort(text) ? errorIn(JSON.parse(text)) : undefined;
    if (error) return void sendError(reply, error);
    if (isShort(text)) return void sendJson(reply, text);
    const bytes = Buffer.from(text);
    const { release } = share ?? (await makeRoom(bytes.length));
    await sendLentReply(parts, reply, { pieces: [bytes], release, isWanted: () => parts.shares.isWanted });
  } finally {
    share?.release();
  }
}

const isShort = (text: string) => text.length <= limits.errorCharsMax;

/** The first two elements: enough to tell whether there is just one. */
async function firstTwo(array: string): Promise<string[]> {
  const [first, second] = (await elementsOf(array)) ?? [];
  return [first, second].filter((element) => element !== undefined);
}

/** The job's output; a list of one without its brackets. If a worker streamed unasked, the output is in its chunks. */
async function resultOf(parts: Parts, job: JobReport, makeRoom: () => Promise<unknown>): Promise<string> {
  const output = job.output?.trim();
  const isEmpty = output === undefined || /^\[\s*\]$/.test(output);
  const chunks = isEmpty ? await readChunks(parts, job, makeRoom) : [];
  const elements = isEmpty ? chunks : output.startsWith("[") ? await firstTwo(output) : [output];
  if (elements.length === 1) return elements[0] as string;
  return output !== undefined && !isEmpty ? output : elements.length > 0 ? `[${elements.join(",")}]` : "{}";
}
