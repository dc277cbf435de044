import { limits } from "../../limits.js";

/** How an engine answers: HTTP's status, and a sentence of its own. */
interface EngineError {
  readonly statusCode?: number;
  readonly code?: string;
  readonly json?: { readonly message?: string } | null;
  readonly message: string;
}

export const statusOf = (error: unknown): number | undefined => (error as EngineError).statusCode;

/** What an engine said, without the library's words around it. */
export function said(error: unknown): string {
  const { json, message } = error as EngineError;
  return (json?.message ?? message.replace(/^\(HTTP code \d+\) [^-]*- /, "")).trim().slice(0, 500);
}

/** Whether nobody answered at all. */
export const isAway = (error: unknown): boolean =>
  error instanceof Silent ||
  /^(ENOENT|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENOTFOUND|EACCES)$/.test(
    (error as EngineError).code ?? "",
  );

class Silent extends Error {}

/** Waits for an engine's answer, for a while. */
export async function answered<T>(asked: Promise<T>, host: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<never>((_, reject) => {
    const late = () => reject(new Silent(`the container engine at ${host} does not answer`));
    timer = setTimeout(late, limits.engineAnswerMs);
  });
  return Promise.race([asked, silence]).finally(() => clearTimeout(timer));
}

/** That nobody answers, as a sentence for the one who runs the machine. */
export const away = (error: unknown, host: string): Error =>
  error instanceof Silent
    ? error
    : new Error(`no container engine answers at ${host}: install Docker, start it, or set DOCKER_HOST`);

/** Why a container could not be started, as a sentence for the one who set its image. */
export function whyNot(error: unknown, image: string, host: string): Error {
  const { code } = error as EngineError;
  if (code === "EACCES")
    return new Error(`the container engine at ${host} does not let us in: add this user to its group (docker)`);
  if (isAway(error)) return away(error, host);
  const text = said(error);
  const reason = /exec: "[^"]*": [^:]+/.exec(text)?.[0] ?? text;
  return new Error(`the image '${image}' could not be started: ${reason}`);
}
