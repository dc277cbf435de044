import { setTimeout as sleep } from "node:timers/promises";
import type { StatusBody, Submission } from "@millrace/api";
import { jobErrorOf, span } from "@millrace/api/words";
import type { Calls } from "./calls.js";
import { type Exit, exits, Failure } from "./exit.js";
import type { Terminal } from "./output/terminal.js";

/** How long one request for a job's end is held: meanwhile the live line stands still. */
const lookMs = 1_000;
/** The same where nothing is shown meanwhile. */
const holdMs = 10_000;

const isFinal = ({ status }: StatusBody): boolean => status !== "IN_QUEUE" && status !== "IN_PROGRESS";

/** Waits for a job's end, with a line that says what is awaited. */
export async function untilEnd(
  calls: Calls,
  terminal: Terminal,
  endpoint: string,
  job: string,
  /** Whether the wait is over before the job's end. */
  isHopeless: (body: StatusBody) => boolean = () => false,
): Promise<StatusBody> {
  const line = terminal.live();
  try {
    for (;;) {
      const body = await patiently(
        () => calls.call<StatusBody>("GET", `/sdk/v2/${endpoint}/status-sync/${job}?wait=${lookMs}`),
        (why) => line.show(`${why} Trying again; the job goes on meanwhile`),
      );
      if (isFinal(body) || isHopeless(body)) return body;
      line.show(awaited(body));
    }
  } catch (error) {
    if (!(error instanceof Failure) || error.exit !== exits.unreachable) throw error;
    const hint = `millrace status ${endpoint} ${job} --wait`;
    throw new Failure(error.exit, `${error.message} The job is kept by the server, and goes on when it runs.`, hint);
  } finally {
    line.end();
  }
}

/** What a job waits for, or that it runs. */
export function awaited(body: StatusBody): string {
  const { status, delayTime, executionTime, queuePosition, waitReason, waitDetail } = body;
  if (status === "IN_PROGRESS") return `running ${span(executionTime)}`;
  const position = queuePosition === undefined ? "" : ` · position ${queuePosition + 1}`;
  // what follows is a log's
  const why = waitDetail?.split("\n")[0] ?? (waitReason as string | undefined)?.replaceAll("_", " ");
  return `waiting ${span(delayTime)}${position}${why === undefined ? "" : ` · ${why}`}`;
}

/** A job's output as people and pipes read it: a text as it is, anything else as JSON. */
export const outputText = ({ output }: StatusBody): string =>
  typeof output === "string" ? output : JSON.stringify(output ?? null, undefined, 2);

/** Waits for a job's end without a word. */
export async function ended(calls: Calls, endpoint: string, job: string): Promise<StatusBody> {
  for (;;) {
    const body = await patiently(() =>
      calls.call<StatusBody>("GET", `/sdk/v2/${endpoint}/status-sync/${job}?wait=${holdMs}`),
    );
    if (isFinal(body)) return body;
  }
}

/** Submits a job, however long the queue or the rate is full. The same idempotency key leads to the same job. */
export function submitted(calls: Calls, endpoint: string, job: Submission, key?: string): Promise<StatusBody> {
  const headers = key === undefined ? {} : { "idempotency-key": key };
  return patiently(() => calls.call<StatusBody>("POST", `/v2/${endpoint}/run`, job, headers));
}

/** Before what was refused for now is tried again. */
const refusedMs = 1_000;
/** How long a server that does not answer is waited for: it may be started again. */
const awayMs = 60_000;

/** Asks again what is refused for now, and for a while also where no server answers. `onTrouble`: told why. */
async function patiently<T>(ask: () => Promise<T>, onTrouble: (why: string) => void = () => {}): Promise<T> {
  let awaySince: number | undefined;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const isAway = error.exit === exits.unreachable;
      awaySince = isAway ? (awaySince ?? performance.now()) : undefined;
      const isOver = awaySince !== undefined && performance.now() - awaySince > awayMs;
      if (isOver || (!isAway && !error.isForNow)) throw error;
      onTrouble(error.message);
      await sleep(refusedMs);
    }
  }
}

/** Shows a job's end: its output, or why there is none; returns the exit code. */
export function showEnd(terminal: Terminal, body: StatusBody): Exit {
  const { error, status } = body;
  const isDone = status === "COMPLETED";
  if (isDone || terminal.isJson) terminal.result(body, outputText(body));
  else {
    const { summary, trace } = jobErrorOf(error ?? "");
    terminal.say([`${terminal.styled("red", `✗ ${status}`, "err")}  ${summary}`.trimEnd(), ...trace].join("\n"));
  }
  return isDone ? exits.done : exits.failed;
}

/** A job's state in one line. */
export function stateLine(terminal: Terminal, body: StatusBody): string {
  const { id, status, delayTime, executionTime, error } = body;
  const times = `waited ${span(delayTime)}  ran ${span(executionTime)}`;
  const why = status === "IN_QUEUE" ? awaited(body) : times;
  const mark =
    { COMPLETED: terminal.styled("green", "✓"), IN_QUEUE: "+", IN_PROGRESS: "·" }[status as string] ??
    terminal.styled("red", "✗");
  return `${mark} ${id}  ${status}  ${why}${error === undefined ? "" : `\n  ${jobErrorOf(error).summary}`}`;
}
