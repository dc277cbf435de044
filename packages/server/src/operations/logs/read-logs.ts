import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { logElsewhere, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { LogSearch, Provider } from "../../provider.js";
import type { Needs } from "../needs.js";
import { type Logged, maskOf, type ShownLine } from "./mask.js";

export type { Logged, ShownLine } from "./mask.js";

/** Lines, oldest first, and a note on missing lines. */
export interface LogPage {
  readonly lines: readonly ShownLine[];
  readonly note?: string | undefined;
  /** Whether older lines were left out. */
  readonly isCut?: boolean;
}

export interface LogParts extends Needs<"registry" | "reader" | "secrets" | "vault" | "clock"> {
  readonly logs: Provider["logs"];
  /** Whether `logs` reads those of a host's workers: here, or at the server that keeps them. */
  readonly readsLogs: (hostNo: number) => boolean;
}

/** Which lines a caller wants. */
export interface LogAsk {
  readonly tail: number;
  readonly sinceUs: number | undefined;
  readonly untilUs?: number | undefined;
  readonly jobId: string | undefined;
  /** The last line that the reader has seen: only lines after it are wanted. */
  readonly after: LinePosition | undefined;
  /** Bounds how much is read for the request; without it, all that is kept. */
  readonly search?: LogSearch | undefined;
}

/** A line's position among the lines of all of an endpoint's workers. */
export interface LinePosition {
  readonly atUs: number;
  readonly workerId: string;
}

/** Refuses if a host keeps the worker's log whose server is away. */
export function assertInReach({ readsLogs }: Pick<LogParts, "readsLogs">, { row }: Logged): void {
  if (!readsLogs(row.hostNo)) throw logElsewhere(row.hostNo);
}

/** The last lines of a worker. */
export async function readWorkerLog(
  needs: LogParts,
  worker: Logged,
  ask: LogAsk,
  signal: AbortSignal,
): Promise<LogPage> {
  assertInReach(needs, worker);
  return { lines: await linesOf(needs, worker, ask, signal) };
}

/** All of an endpoint's workers whose rows are kept: live ones, then the most recently ended. */
export const workersWithLogs = ({ registry }: Needs<"registry">, { no }: Endpoint): LiveWorker[] => [
  ...registry.workersOf(no),
  ...[...registry.endedWorkersOf(no)].sort((one, other) => (other.row.endedAt ?? 0) - (one.row.endedAt ?? 0)),
];

/** The last lines of an endpoint's workers together, as far as the servers that keep them answer. */
export async function readEndpointLog(
  needs: LogParts,
  endpoint: Endpoint,
  ask: LogAsk,
  signal: AbortSignal,
): Promise<LogPage> {
  const workers = workersWithLogs(needs, endpoint);
  const inReach = workers.filter(({ row }) => needs.readsLogs(row.hostNo));
  let lines: ShownLine[] = [];
  const unread: string[] = [];
  let isCut = false;
  for (const worker of inReach) {
    const isFull = lines.length > 0 && lines.length >= ask.tail;
    isCut ||= isFull || isSpent(ask);
    if (isFull && endedLongBefore(worker, lines[0])) break; // and so did the workers after it
    if (isSpent(ask)) break;
    try {
      const more = await linesOf(needs, worker, ask, signal);
      const all = [...lines, ...more].sort(byPlace);
      lines = lastOf(all, ask.tail);
      isCut ||= more.length >= ask.tail || lines.length < all.length;
    } catch (error) {
      unread.push(error instanceof Error ? error.message : String(error));
    }
  }
  return { lines, note: missing(workers.length - inReach.length, unread, isSpent(ask)), isCut };
}

const isSpent = ({ search }: LogAsk): boolean => search !== undefined && search.bytesLeft <= 0;

function endedLongBefore({ row }: Logged, line: ShownLine | undefined): boolean {
  // a worker that other servers gave up on may have kept running for a while
  return row.endedAt !== undefined && line !== undefined && row.endedAt + limits.hostSilenceMs < line.atUs / 1_000;
}

const notSearched = `older lines were not searched: ${limits.logSearchBytesMax / 1_048_576} MB are read for one request; ask for a single worker's log`;

/** Says what is missing from a page of an endpoint's lines. */
function missing(away: number, unread: readonly string[], isCut: boolean): string | undefined {
  const sentences = [
    ...(away > 0 ? [`the logs of ${away} more workers are kept by hosts whose servers do not answer`] : []),
    ...(unread.length > 0 ? [`the logs of ${unread.length} workers could not be read: ${unread[0]}`] : []),
    ...(isCut ? [notSearched] : []),
  ];
  return sentences.length > 0 ? sentences.join("; ") : undefined;
}

/** Bounds the sum of bytes as well as the count: the oldest lines go. */
function lastOf(lines: ShownLine[], count: number): ShownLine[] {
  let from = Math.max(0, lines.length - count);
  let bytes = 0;
  for (let at = lines.length - 1; at >= from; at--) {
    bytes += (lines[at] as ShownLine).text.length;
    if (bytes > limits.logReplyBytesMax) from = at + 1;
  }
  return from === 0 ? lines : lines.slice(from);
}

export const byPlace = (one: LinePosition, other: LinePosition): number =>
  one.atUs - other.atUs || (one.workerId < other.workerId ? -1 : one.workerId > other.workerId ? 1 : 0);

/** Lets a reader that resumes after a line have all the lines that it missed, whatever tail it asked for. */
export function behind(ask: LogAsk): LogAsk {
  const { after, sinceUs = 0 } = ask;
  return after ? { ...ask, tail: limits.logTailMax, sinceUs: Math.max(sinceUs, after.atUs) } : ask;
}

async function linesOf(needs: LogParts, worker: Logged, ask: LogAsk, signal: AbortSignal): Promise<ShownLine[]> {
  const { row } = worker;
  const mask = maskOf(worker);
  const { tail, sinceUs, untilUs, jobId, search } = behind(ask);
  const lines: ShownLine[] = [];
  const query = { tail, sinceUs, untilUs, jobId, search, signal };
  for await (const batch of readable(needs.logs(row.id, row.handle, query))) {
    for (const line of await mask.shown(needs, batch)) if (isBehind(ask.after, line)) lines.push(line);
  }
  return lines;
}

export const isBehind = (after: LinePosition | undefined, line: LinePosition): boolean =>
  !after || byPlace(line, after) > 0;

/** Turns a provider's failure to read into a refusal: its engine may be back soon. */
export async function* readable<T>(lines: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* lines;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Refusal("UNAVAILABLE", `The worker's log cannot be read just now: ${why}.`, { retryAfterSeconds: 1 });
  }
}
