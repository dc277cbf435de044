import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { JsonText } from "../../domain/jobs/job.js";
import { invalid, Refusal } from "../../errors.js";
import { checkOpenAi, jsonOf, type ReceivedText } from "../../json/json.js";
import type { Needs } from "../needs.js";
import { checkKey, type SubmitOutcome, storeJob } from "./submit-job.js";

/** A request to an OpenAI route. */
export interface AskOpenAi {
  readonly endpoint: Endpoint;
  readonly method: string;
  /** What follows `/openai`. */
  readonly path: string;
  /** Undefined if the request has none. */
  readonly body: ReceivedText | undefined;
  readonly idempotencyKey: string | undefined;
  readonly requestId: string;
  /** The client's `traceparent`, if jobs are traced here. */
  readonly traceparent?: string | undefined;
}

/** `streams`: whether the client wants the answer as it is made. */
export type OpenAiOutcome = SubmitOutcome & { readonly streams: boolean };

/** Stores a job whose input holds the route and the unchanged body, as workers that speak OpenAI's API expect it. */
export async function submitOpenAi(
  needs: Needs<"jobs" | "bell" | "clock" | "ids" | "vault" | "emit" | "registry" | "tallies" | "queueRoom">,
  { method, path, body, ...asked }: AskOpenAi,
): Promise<OpenAiOutcome> {
  checkKey(asked.idempotencyKey);
  const { bytes, input, streams } = await readAsk(path, body);
  const parts = {
    input,
    webhook: undefined,
    policy: { lowPriority: false },
    policyText: undefined,
    s3Config: undefined,
  };
  const route = `openai ${method} ${path}` as const;
  return { ...(await storeJob(needs, { ...asked, route, waitMs: undefined }, parts, bytes)), streams };
}

interface Read {
  /** The whole body. */
  readonly bytes: Uint8Array;
  readonly input: JsonText;
  readonly streams: boolean;
}

async function readAsk(path: string, body: ReceivedText | undefined): Promise<Read> {
  const head = `{"openai_route":${JSON.stringify(path)}`;
  if (body === undefined || body.length === 0) return { bytes: Buffer.alloc(0), input: `${head}}`, streams: false };
  const { bytes, scan } = await checkOpenAi(body);
  if (!scan.ok) {
    throw new Refusal("INVALID_JSON", `The request body is not valid JSON: ${scan.why} (at position ${scan.at}).`);
  }
  if (scan.kind !== "object") throw invalid("The body must be a JSON object.");
  const stream = scan.members.get("stream");
  const whole = jsonOf(bytes, { start: 0, end: bytes.length });
  const opening = `${head},"openai_input":`;
  const input =
    typeof whole === "string" ? `${opening}${whole}}` : Buffer.concat([Buffer.from(opening), whole, Buffer.from("}")]);
  return { bytes, input, streams: stream !== undefined && bytes[stream.start] === 0x74 }; // it is JSON: only true begins with a t
}
