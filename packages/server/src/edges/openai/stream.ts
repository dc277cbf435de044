import type { FastifyReply, FastifyRequest } from "fastify";
import type { Signal } from "../../clock.js";
import type { JobReport } from "../../domain/jobs/job.js";
import { chunkOfCompletion } from "../../domain/jobs/openai-chunk.js";
import {
  errorOfEnd,
  jobExpired,
  type OpenAiError,
  openAiError,
  serviceStopping,
  workerLost,
} from "../../domain/jobs/openai-error.js";
import type { Refusal } from "../../errors.js";
import { type Pieced, stringOf, wholeOf } from "../../json/json.js";
import { limits } from "../../limits/index.js";
import { followOutput } from "../../operations/jobs/follow-output.js";
import { wholeJob } from "../../operations/jobs/lend-status.js";
import type { Parts } from "../../operations/needs.js";
import { asRefusal } from "../shared/replies/replies.js";
import type { Heard } from "./answer.js";
import { EventReply } from "./event-reply.js";
import { type Added, EventText } from "./event-text.js";

/** Sends a job's chunks as they come. */
export async function sendStream(
  parts: Parts,
  request: FastifyRequest,
  reply: FastifyReply,
  jobId: string,
  gone: Signal,
): Promise<Heard> {
  const events = new EventReply(reply, parts, gone);
  const answer = new Answer(events);
  try {
    for await (const event of followOutput(parts, request.endpoint, jobId, gone)) {
      if (event.kind === "end") {
        await answer.end(event.job, () => wholeJob(parts, request.endpoint, event.job, gone));
        return "all";
      }
      if (event.kind === "quiet") await answer.keepAlive();
      else if (event.kind === "again") {
        if (!answer.again()) return "part";
      } else if (!(await answer.add(event.chunks))) return "error";
    }
    answer.fail(serviceStopping); // no effect if the reader has gone
    return answer.isDone ? "all" : "part";
  } catch (error) {
    const refusal = asRefusal(error, { id: request.id, route: request.routeOptions.url ?? "" }, parts.emit);
    if (!reply.sent && refusal.code !== "JOB_NOT_FOUND") throw refusal;
    answer.fail(asError(refusal));
    return refusal.code === "JOB_NOT_FOUND" ? "all" : "part";
  } finally {
    answer.drop();
  }
}

const asError = ({ code, status, message }: Refusal): OpenAiError =>
  code === "JOB_NOT_FOUND" ? jobExpired : openAiError(status, code, message);

/** The reply to a streaming client so far. */
class Answer {
  readonly #events: EventReply;
  #text = new EventText();

  constructor(events: EventReply) {
    this.#events = events;
  }

  get isDone(): boolean {
    return this.#text.isDone;
  }

  async keepAlive(): Promise<void> {
    if (!this.#text.isInEvent) await this.#events.keepAlive();
  }

  /** Called when the job starts over. False if the client has already seen the beginning of another answer. */
  again(): boolean {
    if (this.#events.hasSpoken) this.fail(workerLost);
    this.drop();
    this.#text = new EventText();
    return !this.#events.hasSpoken;
  }

  /** Adds chunks; false if they contained an error. */
  add(chunks: Parameters<EventText["addAll"]>[0]): Promise<boolean> {
    return this.#tell(this.#text.addAll(chunks));
  }

  /** `read` fetches the job with its texts; not needed if the client has received everything already. */
  async end({ status }: JobReport, read: () => ReturnType<typeof wholeJob>): Promise<void> {
    if (status === "COMPLETED" && this.#events.hasSpoken) return this.#close();
    const { job, output, share } = await read();
    try {
      const error = errorOfEnd(job);
      if (error) this.fail(error);
      else if (this.#events.hasSpoken || (await this.#tellWhole(output))) this.#close();
    } finally {
      share?.release();
    }
  }

  fail(error: OpenAiError): void {
    this.#events.fail(error, this.#text.isInEvent ? "\n\n" : "");
  }

  /** Forgets the text that is held back. */
  drop(): void {
    this.#text.end();
  }

  async #tell(texts: AsyncIterable<Added>): Promise<boolean> {
    for await (const { text, error } of texts) {
      await this.#events.speak(text);
      if (!error) continue;
      this.fail(error);
      return false;
    }
    return true;
  }

  #close(): void {
    const text = this.#text.end();
    this.#events.end(text === "" && !this.#events.hasSpoken ? "data: [DONE]\n\n" : text);
  }

  /** Sends the output of a handler that does not stream. */
  async #tellWhole(pieces: Pieced | undefined): Promise<boolean> {
    if (pieces === undefined) return true;
    const output = await wholeOf(pieces);
    const isShort = output.length < limits.jsonThreadBytes;
    const chunk = isShort ? chunkOfCompletion(JSON.parse(stringOf(output))) : undefined;
    return this.#tell(this.#text.add(chunk === undefined ? output : JSON.stringify(chunk)));
  }
}
