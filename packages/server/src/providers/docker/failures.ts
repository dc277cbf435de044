import { realTime, type Timer } from "../../clock.js";
import type { ExitCause } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import { StartFailed } from "../../provider.js";
import { type Credentials, pullFailure } from "../images/pull-failures.js";

/** An engine's error: an HTTP status and a message. */
interface EngineError {
  readonly statusCode?: number;
  readonly code?: string;
  readonly json?: { readonly message?: string } | null;
  readonly message: string;
}

export const statusOf = (error: unknown): number | undefined => (error as EngineError).statusCode;

/** The engine's message, without the library's prefix. */
export const said = (error: unknown): string => wholeOf(error).slice(0, 500);

function wholeOf(error: unknown): string {
  const { json, message } = error as EngineError;
  return (json?.message ?? message.replace(/^\(HTTP code \d+\) [^-]*- /, "")).trim();
}

/** Whether the container's name is taken: Podman has no status of its own for that. */
export const isTaken = (error: unknown): boolean =>
  statusOf(error) === 409 || /container name .* is already in use/.test(said(error));

/** Whether no engine answered at all. */
export const isAway = (error: unknown): boolean =>
  error instanceof Silent ||
  /^(ENOENT|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENOTFOUND|EACCES)$/.test(
    (error as EngineError).code ?? "",
  );

class Silent extends Error {}

/** Waits for an engine's answer for a limited time; then aborts the signal, for calls that take it. */
export async function answered<T>(
  asked: Promise<T> | ((signal: AbortSignal) => Promise<T>),
  host: string,
  withinMs: number = limits.engineAnswerMs,
): Promise<T> {
  let timer: Timer | undefined;
  const reading = new AbortController();
  const silence = new Promise<never>((_, reject) => {
    timer = realTime.after(withinMs, () => {
      reject(new Silent(`the container engine at ${host} does not answer`));
      reading.abort();
    });
  });
  const answer = typeof asked === "function" ? asked(reading.signal) : asked;
  return Promise.race([answer, silence]).finally(() => realTime.cancel(timer));
}

/** Says for the machine's operator that no engine answers. */
export const away = (error: unknown, host: string): Error =>
  error instanceof Silent
    ? error
    : new Error(`no container engine answers at ${host}: install Docker, start it, or set DOCKER_HOST`);

/** Why a container could not be started, as a sentence for the owner of its template. */
export function whyNot(error: unknown, image: string, host: string): StartFailed {
  if (error instanceof StartFailed) return error;
  const { code } = error as EngineError;
  if (code === "EACCES") {
    const sentence = `the container engine at ${host} denies access: add this server's user to its group (docker)`;
    return new StartFailed(sentence, "start");
  }
  if (isAway(error)) return new StartFailed(away(error, host).message, "start");
  const text = said(error);
  if (ofGpus.test(text)) {
    const sentence = `no GPU could be given to a container of the image '${image}': ${text}`;
    return new StartFailed(`${sentence} (is the NVIDIA Container Toolkit installed, and the driver loaded?)`, "gpu");
  }
  const missing = /exec: "[^"]*": [^:]+/.exec(text)?.[0];
  const cause: ExitCause = missing !== undefined || /no such image/i.test(text) ? "image" : "start";
  return new StartFailed(`the image '${image}' could not be started: ${missing ?? text}`, cause);
}

/** Messages of engines and NVIDIA's runtime when requested GPUs are not available. */
const ofGpus =
  /could not select device driver|nvidia-container|nvidia-ctk|nvml error|runtime name:? "?nvidia|cdi device/i;

/** Why an image could not be pulled, in words, with the engine's message. */
export const whyNotPulled = (error: unknown, image: string, auth: Credentials | undefined): StartFailed =>
  pullFailure(wholeOf(error), { image, auth, where: "this machine" });
