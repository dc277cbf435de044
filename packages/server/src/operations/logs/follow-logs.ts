import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { LogQuery } from "../../provider.js";
import { maskOf } from "./mask.js";
import {
  assertInReach,
  behind,
  byPlace,
  isBehind,
  type LinePosition,
  type LogAsk,
  type Logged,
  type LogPage,
  type LogParts,
  readable,
  type ShownLine,
  workersWithLogs,
} from "./read-logs.js";

/** What the reader of a followed log receives. */
export type LogEvent =
  | { readonly kind: "lines"; readonly lines: readonly ShownLine[] }
  | { readonly kind: "note"; readonly text: string };

/** What of a log its follower was shown first. */
export interface Shown {
  /** All that is older was shown or left out; undefined if nothing was left out. */
  readonly first: LinePosition | undefined;
  /** The last line of each worker, by its id. */
  readonly lasts: ReadonlyMap<string, LinePosition>;
}

/**
 * Where the lines of a page are: no more of them is kept while a log is followed. `begunUs` is when the first log was read:
 * a worker may have printed since, after its own was read and before the page's first line.
 */
export function positionsOf(
  { lines, isCut }: Omit<LogPage, "lines"> & { lines: readonly LinePosition[] },
  begunUs: number,
): Shown {
  const position = ({ atUs, workerId }: LinePosition): LinePosition => ({ atUs, workerId });
  const [oldest] = [...lines.slice(0, 1), { atUs: begunUs, workerId: "" }].sort(byPlace);
  return {
    first: isCut && oldest ? position(oldest) : undefined,
    lasts: new Map(lines.map((line) => [line.workerId, position(line)])),
  };
}

/**
 * A worker's lines as they come, beginning after the lines that were shown, until the worker ends. If the worker is
 * still starting, begins with its first line.
 */
export async function* followWorkerLog(
  needs: LogParts,
  worker: Logged,
  ask: LogAsk,
  { lasts }: Shown,
  signal: AbortSignal,
): AsyncGenerator<LogEvent> {
  assertInReach(needs, worker);
  const from = { ...ask, after: lasts.get(worker.row.id) ?? ask.after };
  for await (const lines of come(needs, worker, from, signal)) yield { kind: "lines", lines };
}

async function* come(
  needs: LogParts,
  worker: Logged,
  ask: LogAsk,
  signal: AbortSignal,
): AsyncGenerator<readonly ShownLine[]> {
  const mask = maskOf(worker);
  const begunUs = needs.clock.now() * 1_000;
  let { after } = ask;
  let query: Pick<LogQuery, "tail" | "sinceUs" | "search"> = behind(ask);
  while (!signal.aborted) {
    const { row } = worker; // read before the log is: the log of a worker that has ended is complete
    const isLive = row.endedAt === undefined;
    const follow = isLive && row.startedAt !== undefined;
    for await (const batch of readable(
      needs.logs(row.id, row.handle, { ...query, untilUs: ask.untilUs, jobId: ask.jobId, follow, signal }),
    )) {
      const lines = (await mask.shown(needs, batch)).filter((line) => isBehind(after, line));
      after = lines.at(-1) ?? after;
      if (lines.length > 0) yield lines;
    }
    if (!isLive) return;
    if (isLive && !follow) await started(needs, worker, signal);
    else await needs.clock.sleep(limits.logPassMs, signal); // its end is not recorded yet
    query = { tail: undefined, sinceUs: after?.atUs ?? ask.sinceUs ?? (ask.tail === 0 ? begunUs : undefined) };
  }
}

/** Resolves soon after a worker's start: its first lines must reach the readers before other workers' later ones are shown. */
async function started({ clock }: LogParts, worker: Logged, signal: AbortSignal): Promise<void> {
  do await clock.sleep(limits.logPollMs, signal);
  while (!signal.aborted && worker.row.startedAt === undefined && worker.row.endedAt === undefined);
}

/**
 * The lines of all of an endpoint's workers as they come, after those that were shown, ordered by time. Workers that
 * start meanwhile join. Ends when the endpoint is deleted.
 */
export async function* followEndpointLog(
  needs: LogParts,
  endpoint: Endpoint,
  ask: LogAsk,
  shown: Shown,
  signal: AbortSignal,
): AsyncGenerator<LogEvent> {
  const ending = new AbortController();
  const both = AbortSignal.any([signal, ending.signal]);
  const gathering = new Gathering(needs, endpoint, ask, both);
  try {
    gathering.begin(shown);
    while (!signal.aborted && isThere(needs, endpoint)) {
      for (const text of gathering.notes.splice(0)) yield { kind: "note", text };
      const ripe = gathering.ripe();
      if (ripe.length > 0) yield { kind: "lines", lines: ripe };
      gathering.join();
      await needs.clock.sleep(limits.logGatherMs, signal);
    }
  } finally {
    ending.abort();
  }
}

function isThere({ registry }: LogParts, { no }: Endpoint): boolean {
  const endpoint = registry.endpointByNo(no);
  return endpoint !== undefined && endpoint.deletedAt === undefined;
}

interface Held {
  readonly line: ShownLine;
  readonly arrivedAt: number;
}

/**
 * Lines of several workers on their way to one reader, held until no older line can come. How much is held is bounded.
 */
class Gathering {
  readonly #needs: LogParts;
  readonly #endpoint: Endpoint;
  readonly #ask: LogAsk;
  readonly #signal: AbortSignal;
  readonly #joined = new Set<number>();
  #followed = 0;
  #held: Held[] = [];
  #bytes = 0;
  #full: { promise: Promise<void>; end: () => void } | undefined;
  /** Messages to the reader. */
  readonly notes: string[] = [];

  constructor(needs: LogParts, endpoint: Endpoint, ask: LogAsk, signal: AbortSignal) {
    this.#needs = needs;
    this.#endpoint = endpoint;
    this.#ask = ask;
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#full?.end());
  }

  /** Follows each live worker, from its last line among those shown. */
  begin({ first, lasts }: Shown): void {
    for (const worker of this.#inReach(workersWithLogs(this.#needs, this.#endpoint))) {
      this.#joined.add(worker.row.no);
      const after = lasts.get(worker.row.id) ?? first ?? this.#ask.after;
      if (worker.row.endedAt === undefined) this.#follow(worker, { ...this.#ask, after });
    }
  }

  /** Follows workers that have joined since, from their first line; they may even have ended by now. */
  join(): void {
    for (const worker of this.#inReach(workersWithLogs(this.#needs, this.#endpoint))) {
      if (this.#joined.has(worker.row.no)) continue;
      this.#joined.add(worker.row.no);
      this.#follow(worker, { ...this.#ask, tail: limits.logTailMax, search: undefined });
    }
  }

  /** Takes the lines that no older line can precede any more, in order. */
  ripe(): ShownLine[] {
    const now = this.#needs.clock.now();
    let until: LinePosition | undefined;
    for (const { line, arrivedAt } of this.#held) {
      if (arrivedAt + limits.logHoldMs <= now && (!until || byPlace(line, until) > 0)) until = line;
    }
    if (!until) return [];
    const last = until;
    const lines = this.#held.filter(({ line }) => byPlace(line, last) <= 0).map(({ line }) => line);
    this.#held = this.#held.filter(({ line }) => byPlace(line, last) > 0);
    this.#bytes = this.#held.reduce((sum, { line }) => sum + line.text.length, 0);
    if (this.#bytes < limits.logHeldBytesMax) this.#full?.end();
    return lines.sort(byPlace);
  }

  #inReach(workers: readonly LiveWorker[]): LiveWorker[] {
    return workers.filter(({ row }) => this.#needs.readsLogs(row.hostNo));
  }

  #follow(worker: Logged, ask: LogAsk): void {
    if (this.#followed >= limits.logSourcesMax) {
      this.notes.push(
        `worker ${worker.row.id} is not followed: the limit of ${limits.logSourcesMax} followed workers is reached`,
      );
      return;
    }
    this.#followed++;
    this.#pump(worker, ask)
      .catch((error) => void this.notes.push(`worker ${worker.row.id} is no longer followed: ${error.message}`))
      .finally(() => this.#followed--);
  }

  async #pump(worker: Logged, ask: LogAsk): Promise<void> {
    for await (const lines of come(this.#needs, worker, ask, this.#signal)) {
      if (this.#signal.aborted) return;
      const arrivedAt = this.#needs.clock.now();
      for (const line of lines) {
        this.#held.push({ line, arrivedAt });
        this.#bytes += line.text.length;
      }
      if (this.#bytes >= limits.logHeldBytesMax) await this.#room();
    }
  }

  /** Holds up the workers' logs while their reader is slow. */
  #room(): Promise<void> {
    if (!this.#full) {
      let end = () => {};
      const promise = new Promise<void>((resolve) => (end = resolve)).then(() => void (this.#full = undefined));
      this.#full = { promise, end };
    }
    return this.#full.promise;
  }
}
