import type { Writable } from "node:stream";
import { styleText } from "node:util";
import { jobErrorOf, shortJobId, shortName, span } from "@millrace/api";
import { coloured, harmless } from "../../domain/plain-text.js";
import type { MillraceEvent } from "../../events.js";
import { limits } from "../../limits/index.js";
import { bounded } from "./bounded.js";
import { Crashes } from "./crashes.js";
import { type EventLine, type Kind, lineOf } from "./event-lines.js";
import { missingModule, packageOf, shownText, type WorkerLine } from "./worker-lines.js";

/** What the terminal's lines are made from. */
export interface TerminalParts {
  readonly out: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  /** The width of a terminal that `out` leads to without being one itself. */
  readonly columns: number;
  /** Whether details are shown, and ids in full. */
  readonly isVerbose: boolean;
  /** The lowest kind of line that is shown. */
  readonly isQuiet: boolean;
  /** What to do about a package that a Python handler lacks; `{package}` stands for its name. */
  readonly packageAdvice: string;
  readonly clock: { now(): number; after(ms: number, call: () => void): void };
  readonly endpointName: (id: string) => string | undefined;
  /** A worker's lines as they come, until it ends. */
  readonly linesOf: (workerId: string) => AsyncIterable<readonly WorkerLine[]>;
  /** What a job's worker said when it failed. */
  readonly errorOf: (endpointId: string, jobId: string) => Promise<string | undefined>;
}

interface Entry {
  readonly at: number;
  readonly kind: Kind | "output";
  readonly endpointId: string | undefined;
  readonly text: string;
  readonly below: readonly string[];
}

type JobEnd = Extract<MillraceEvent, { type: "job.ended" }>;

/**
 * What happens, one line each, for a person at a terminal; among them what handlers print. Lines wait a moment, so that
 * those of workers, which come through their logs, stand in the order of their times.
 */
export class TerminalLog {
  readonly #parts: TerminalParts;
  readonly #entries: Entry[] = [];
  readonly #names = new Map<string, string>();
  /** How long the jobs waited that run now, and how much of that was the start of their worker. */
  readonly #waits = new Map<string, string>();
  /** By worker: how long its start took, until its first job. */
  readonly #starts = new Map<string, number>();
  /** Workers whose stop or failure has been told: their end is no news. */
  readonly #stopping = new Set<string>();
  /** By endpoint: why the scaler last started workers. */
  readonly #reasons = new Map<string, string>();
  /** By endpoint: the last traceback, and how many jobs in a row have ended with it. */
  readonly #traces = new Map<string, { readonly text: string; times: number }>();
  readonly #crashes = new Crashes();
  #leftOut = 0;
  #isDue = false;

  constructor(parts: TerminalParts) {
    this.#parts = parts;
    process.once("exit", () => this.#write(this.#entries.splice(0)));
  }

  readonly emit = (event: MillraceEvent): void => {
    if (event.type === "job.ended") return void this.#ended(event);
    if (this.#isSaid(event)) return;
    this.#note(event);
    const line = lineOf(event, { job: this.#job, worker: this.#worker, reason: (id) => this.#reasons.get(id) });
    if (line && this.#isShown(event, line))
      this.#add({
        at: this.#parts.clock.now(),
        endpointId: line.endpointId,
        kind: line.kind,
        text: line.text,
        below: [],
      });
    if (event.type === "worker.ended") this.#forget(event.workerId);
  };

  /** Both the operation that stops a worker and the loop that ends it say so. */
  #isSaid(event: MillraceEvent): boolean {
    if (event.type !== "worker.stopping" || !this.#stopping.has(event.workerId)) return false;
    return !this.#parts.isVerbose;
  }

  #isShown(event: MillraceEvent, { kind, isDetail }: EventLine): boolean {
    const { isVerbose, isQuiet } = this.#parts;
    if (isVerbose) return true;
    if (event.type === "worker.ended" && this.#stopping.has(event.workerId)) return false;
    return !isDetail && (!isQuiet || kind === "attention" || kind === "failed");
  }

  #note(event: MillraceEvent): void {
    if (event.type === "worker.stopping" || event.type === "worker.startFailed") this.#stopping.add(event.workerId);
    if (event.type === "endpoint.scaled" && event.outcome.startsWith("start"))
      bounded(this.#reasons).set(event.endpointId, event.reason);
    if (event.type === "worker.started") {
      this.#crashes.began(event.workerId);
      void this.#follow(event);
    }
    if (event.type === "worker.ready") this.#crashes.worked(event.endpointId, event.workerId);
    if (event.type === "worker.startFailed") this.#crashes.failed(event.endpointId);
    if (event.type === "worker.ready") bounded(this.#starts).set(event.workerId, event.afterMs);
    if (event.type !== "job.taken") return;
    const startMs = this.#starts.get(event.workerId);
    this.#starts.delete(event.workerId);
    const start = startMs === undefined || startMs > event.delayMs ? "" : ` (start ${span(startMs)})`;
    bounded(this.#waits).set(event.jobId, `waited ${span(event.delayMs)}${start}  `);
  }

  async #ended({ endpointId, jobId, status, executionMs }: JobEnd): Promise<void> {
    const { clock, isQuiet, errorOf } = this.#parts;
    const at = clock.now();
    const isDone = status === "COMPLETED";
    const wait = this.#waits.get(jobId);
    this.#waits.delete(jobId);
    if (isQuiet && isDone) return;
    const times = `${wait ?? ""}ran ${span(executionMs)}`;
    if (isDone)
      return this.#add({ at, endpointId, kind: "done", text: `job ${this.#job(jobId)}  ${times}`, below: [] });
    const said = status === "FAILED" ? await errorOf(endpointId, jobId).catch(() => undefined) : undefined;
    const { summary, trace } = jobErrorOf(said?.slice(0, limits.terminalErrorCharsMax) ?? status);
    const text = `job ${this.#job(jobId)}  ${summary}  ${times}`;
    this.#add({ at, endpointId, kind: "failed", text, below: this.#once(endpointId, trace) });
  }

  /** A traceback, or how often the same one has been seen. */
  #once(endpointId: string, trace: readonly string[]): readonly string[] {
    if (trace.length === 0) return [];
    const text = trace.join("\n");
    const last = this.#traces.get(endpointId);
    if (last?.text === text) return [`the same traceback as before, ${++last.times} times now`];
    bounded(this.#traces).set(endpointId, { text, times: 1 });
    const most = limits.terminalTraceLines;
    return trace.length <= most ? trace : [...trace.slice(0, most), `… ${trace.length - most} more lines`];
  }

  async #follow({ endpointId, workerId }: { endpointId: string; workerId: string }): Promise<void> {
    const name = this.#worker(workerId);
    try {
      for await (const lines of this.#parts.linesOf(workerId))
        for (const line of lines) {
          const text = shownText(line);
          if (text === undefined || this.#crashes.hasSeen(endpointId, workerId, text)) continue;
          const at = line.atUs / 1_000;
          this.#add({ at, endpointId, kind: "output", text: `${name} │ ${text}`, below: [] });
          const missing = missingModule(text);
          if (missing === undefined) continue;
          const advice = this.#parts.packageAdvice.replaceAll("{package}", () => packageOf(missing));
          const told = `Python finds no module "${missing}"; if a package has it: ${advice}`;
          this.#add({ at: at + 0.001, endpointId, kind: "attention", text: told, below: [] });
        }
      this.#crashes.forget(workerId);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const text = `what worker ${name} prints cannot be read: ${why}`;
      this.#add({ at: this.#parts.clock.now(), endpointId, kind: "attention", text, below: [] });
    }
  }

  readonly #job = (id: string): string => (this.#parts.isVerbose ? id : shortJobId(id));

  /** A name that no other living worker has. */
  readonly #worker = (id: string): string => {
    if (this.#parts.isVerbose) return id;
    const known = this.#names.get(id);
    if (known !== undefined) return known;
    const taken = new Set(this.#names.values());
    let name = shortName(id);
    for (let n = 2; taken.has(name); n++) name = `${shortName(id)}-${n}`;
    bounded(this.#names).set(id, name);
    return name;
  };

  #forget(workerId: string): void {
    this.#names.delete(workerId);
    this.#starts.delete(workerId);
    this.#stopping.delete(workerId);
  }

  #add(entry: Entry): void {
    if (this.#entries.length >= limits.terminalLinesHeld) {
      this.#leftOut++;
      return;
    }
    this.#entries.push(entry);
    if (this.#isDue) return;
    this.#isDue = true;
    this.#parts.clock.after(limits.terminalHoldMs, this.#flush);
  }

  readonly #flush = (): void => {
    const until = this.#parts.clock.now() - limits.terminalHoldMs;
    const ripe = this.#entries.filter(({ at }) => at <= until);
    const waiting = this.#entries.filter(({ at }) => at > until);
    this.#entries.splice(0, this.#entries.length, ...waiting);
    this.#write(ripe);
    this.#isDue = waiting.length > 0;
    if (this.#isDue) this.#parts.clock.after(limits.terminalHoldMs / 4, this.#flush);
  };

  #write(entries: Entry[]): void {
    const lines = entries.sort((one, other) => one.at - other.at).flatMap((entry) => this.#lines(entry));
    if (this.#leftOut > 0)
      lines.push(this.#styled("yellow", `          … ${this.#leftOut} lines left out: too many at once`));
    this.#leftOut = 0;
    if (lines.length > 0) this.#parts.out.write(`${lines.join("\n")}\n`);
  }

  #lines({ at, kind, endpointId, text, below }: Entry): string[] {
    const time = new Date(at).toTimeString().slice(0, 8);
    const wide = (this.#parts.out.columns ?? this.#parts.columns) < 80 ? 10 : 16;
    const name = endpointId === undefined ? "" : (this.#parts.endpointName(endpointId) ?? endpointId);
    const column = (name.length > wide ? `${name.slice(0, wide - 1)}…` : name).padEnd(wide);
    const { mark, style } = looks[kind];
    const head = `  ${this.#styled("dim", time)}  ${column}`;
    const indent = " ".repeat(2 + 8 + 2 + wide + 3);
    const shown = kind === "output" ? coloured(text, this.#styled("green", "") !== "") : harmless(text);
    const [first = "", ...rest] = shown.split("\n");
    return [
      `${head} ${this.#styled(style, `${mark} ${first}`)}`,
      ...[...rest, ...below.map(harmless)].map((line) =>
        this.#styled(kind === "output" ? "plain" : style, indent + line),
      ),
    ];
  }

  #styled(style: Style, text: string): string {
    return style === "plain" ? text : styleText(style, text, { stream: this.#parts.out as NodeJS.WriteStream });
  }
}

type Style = "plain" | "dim" | "green" | "red" | "yellow";

const looks: Readonly<Record<Entry["kind"], { readonly mark: string; readonly style: Style }>> = {
  queued: { mark: "+", style: "plain" },
  life: { mark: "·", style: "dim" },
  done: { mark: "✓", style: "green" },
  failed: { mark: "✗", style: "red" },
  attention: { mark: "!", style: "yellow" },
  output: { mark: " ", style: "plain" },
};
