import { readPythonLiteral } from "../python-literal.js";
import type { JobReport } from "./job.js";

/** An error in the form that OpenAI's clients read, with the HTTP status of its reply. */
export interface OpenAiError {
  readonly status: number;
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | number | null;
  /** Clients resend requests that failed with 409 or 5xx; this one would only fail, or cost, as much again. */
  readonly isLast?: true;
}

/** OpenAI's error type for a status. */
export function errorType(status: number): string {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

/** An error of our own. */
export function openAiError(status: number, code: string, message: string): OpenAiError {
  return { status, message, type: errorType(status), param: null, code };
}

function lastError(status: number, code: string, message: string): OpenAiError {
  return { ...openAiError(status, code, message), isLast: true };
}

/** For a job that expired before its worker finished it. */
export const jobExpired = lastError(504, "JOB_EXPIRED", "The job's time to live passed before it was done.");
/** For an answer whose worker was lost halfway: it cannot start over without the client noticing. */
export const workerLost = openAiError(
  502,
  "WORKER_LOST",
  "The worker was lost in the middle of the answer; send the request again.",
);

/** For a job that can no longer be waited for. */
export const serviceStopping = openAiError(503, "UNAVAILABLE", "The service is stopping; send the request again.");

/** Why a job that has ended has no result; undefined if it may have one. */
export function errorOfEnd({ status, error }: Pick<JobReport, "status" | "error">): OpenAiError | undefined {
  switch (status) {
    case "FAILED":
      return errorOfJob(error ?? "");
    case "TIMED_OUT":
      return lastError(504, "JOB_TIMED_OUT", error ?? "The job ran longer than its executionTimeout.");
    case "CANCELLED":
      return lastError(409, "JOB_CANCELLED", error ?? "The job was cancelled.");
    default:
      return undefined;
  }
}

/** The body of an error reply, and the data of an error event. */
export const errorText = ({ message, type, param, code }: OpenAiError): string =>
  JSON.stringify({ error: { message, type, param, code } });

/** Reads a FAILED job's error: JSON, the text of a Python dict, or a plain sentence. */
export function errorOfJob(text: string): OpenAiError {
  const said = readAny(text);
  const error = errorIn(said) ?? errorOf(said, true);
  if (error) return error;
  // the stock worker package reports an exception like this
  const raised = isObject(said) ? said.error_message : undefined;
  return openAiError(500, "JOB_FAILED", typeof raised === "string" && raised !== "" ? raised : text);
}

/** The error in an output: some workers return errors as if they were results. */
export function errorIn(output: unknown): OpenAiError | undefined {
  if (!isObject(output)) return undefined;
  if (output.object === "error") return errorOf(output, true);
  if (output.object !== undefined) return undefined; // a response object reports its own failure like this
  const { error } = output;
  return typeof error === "string" ? errorOfJob(error) : errorOf(error, false);
}

function readAny(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return readPythonLiteral(text)?.value;
  }
}

/** Whether a value is a JSON object. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function errorOf(said: unknown, needsMessage: boolean): OpenAiError | undefined {
  if (!isObject(said)) return undefined;
  const { message, type, param, code } = said;
  if (typeof message !== "string" && needsMessage) return undefined;
  const status = isErrorStatus(code) ? code : 500;
  return {
    status,
    message: typeof message === "string" && message !== "" ? message : "The worker reported an error without a text.",
    type: typeof type === "string" ? type : errorType(status),
    param: typeof param === "string" ? param : null,
    code: typeof code === "string" || typeof code === "number" ? code : null,
  };
}

const isErrorStatus = (code: unknown): code is number =>
  typeof code === "number" && Number.isInteger(code) && code >= 400 && code <= 599;
