import { realTime, type Timer } from "../../clock.js";
import type { HiddenTexts } from "../../domain/workers/log-line.js";
import { limits } from "../../limits/index.js";
import type { JobSecrets } from "../../provider.js";
import { turns } from "../../turns.js";
import { LogFile, logPath } from "../log-files/log-file.js";
import { readLogFiles } from "../log-files/reading.js";
import { LineTimes, storedLine } from "../log-files/stored-line.js";
import { type Cluster, statusOf } from "./api-server/cluster.js";
import { linesIn } from "./lines.js";
import { type KeptEnd, LogPosition } from "./log-position.js";
import { containerName } from "./pod.js";

/** A pod's log, and where it is kept. */
interface PodLogParts {
  readonly cluster: Cluster;
  /** The path of its log in the API. */
  readonly path: string;
  readonly logsDir: string;
  readonly workerId: string;
  /** Of the pod: a worker whose start was begun anew has another one. */
  readonly uid: string;
  readonly secrets: HiddenTexts;
  /** Secrets of its jobs that were noted since the last call. */
  readonly more: ReturnType<JobSecrets>;
  /** The pod has run for a while: what it has said so far is read at once, for whoever waits for it. */
  readonly isLate: boolean;
}

/** A time stamp: nanoseconds at most. */
const timeBytesMax = 40;
/** Of a UTF-16 unit. */
const utf8BytesMax = 3;

/**
 * Keeps a pod's log in its worker's files from its first line on. Kubernetes does not say which pipe a line came from:
 * all count as stdout.
 */
export class PodLog {
  readonly #parts: PodLogParts;
  readonly #leaving = new AbortController();
  readonly #over = new AbortController();
  readonly #times = new LineTimes();
  #file: LogFile | undefined;
  #position = new LogPosition();
  #isComplete = false;
  #caughtUp = () => {};
  /** Resolves when what the pod had said before is in its files. */
  readonly begun = new Promise<void>((done) => {
    this.#caughtUp = done;
  });
  /** Resolves when all that the pod has said is in its files, or can't be read any more. */
  readonly complete: Promise<void>;

  constructor(parts: PodLogParts) {
    this.#parts = parts;
    const run = this.#run().catch(() => {}); // that costs the log, never the worker
    this.complete = run.finally(() => {
      this.#isComplete = true;
      this.#caughtUp();
      this.#file?.close();
    });
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  get uid(): string {
    return this.#parts.uid;
  }

  get secrets(): HiddenTexts {
    return this.#parts.secrets;
  }

  /** The pod has ended: what it has said is the last. */
  end = (): void => this.#over.abort();
  leave = (): void => this.#leaving.abort();

  async #run(): Promise<void> {
    const { logsDir, workerId, isLate } = this.#parts;
    const kept = await keptEnd(logsDir, workerId);
    if (kept) this.#times.next(kept.lastUs);
    this.#position = new LogPosition(kept, isLate ? limits.podLogBackMs * 1_000 : 0);
    this.#file = new LogFile(logPath(logsDir, workerId));
    if (isLate) await this.#read(false).catch(() => {});
    this.#caughtUp();
    let ms: number = limits.logPassMs;
    for (let lastTries = limits.podLogLastTries; lastTries > 0 && !this.#leaving.signal.aborted; ) {
      const wasOver = this.#over.signal.aborted;
      if (wasOver) lastTries--;
      try {
        const follows = !wasOver && !this.#position.isSeeking;
        await this.#read(follows);
        if (wasOver) return;
        ms = limits.logPassMs;
      } catch (error) {
        // a container that has not run by the end of its pod never does: 400
        if (isGone(error) || (wasOver && statusOf(error) === 400)) return;
        ms = Math.min(ms * 2, limits.clusterRetryMsMax); // its node may be gone
      }
      // a followed log ends when its kubelet starts again, too
      const { signal } = this.#leaving;
      if (wasOver) await realTime.sleep(limits.clusterRetryMs, signal);
      else await realTime.sleep(ms, AbortSignal.any([this.#over.signal, signal]));
    }
  }

  async #read(follow: boolean): Promise<void> {
    const { cluster, path } = this.#parts;
    const { signal } = this.#leaving;
    const query = { container: containerName, timestamps: true, follow, sinceTime: this.#position.resume() };
    const stream = await cluster.stream(path, { query, signal, silenceMs: follow ? 0 : limits.clusterAnswerMs });
    // the stream of a pod that has ended does, too, unless its node is gone
    const ending = () => {
      late = realTime.after(limits.podLogsMs, () => stream.destroy());
    };
    let late: Timer | undefined;
    if (follow && this.#over.signal.aborted) ending();
    else if (follow) this.#over.signal.addEventListener("abort", ending);
    let lines: Buffer[] = [];
    let bytes = 0;
    try {
      // a followed log may end within a line, whose rest is there when it is read on
      for await (const line of linesIn(stream, this.#lineBytesMax, !follow)) {
        lines.push(line);
        bytes += line.length;
        // lines that came together are written together
        if (bytes < limits.logBlockBytes && stream.readableLength > 0) continue;
        await this.#store(lines);
        [lines, bytes] = [[], 0];
        if (turns.isOver) await turns.take(["logs"]);
      }
    } finally {
      await this.#store(lines).catch(() => {}); // they are read again
      this.#over.signal.removeEventListener("abort", ending);
      realTime.cancel(late);
      stream.destroy();
    }
    if (follow || !this.#position.isSeeking) return;
    // the kubelet has rotated what is kept away, or it is of an earlier pod
    this.#position.giveUp();
    await this.#read(false);
  }

  /** A line is masked before it is cut: a secret may begin before its end. */
  #lineBytesMax = (): number => limits.logLineBytesMax + timeBytesMax + utf8BytesMax * this.#parts.secrets.longest;

  async #store(lines: readonly Buffer[]): Promise<void> {
    if (lines.length === 0) return;
    // who noted a secret has handed out its job afterwards
    for (const secret of await this.#parts.more()) this.#parts.secrets.add(secret);
    this.#file?.append(lines.map((line) => this.#stored(line.toString("utf8"))).join(""));
  }

  /** A line as it is stored; empty if it was read before. */
  #stored(line: string): string {
    const blank = line.indexOf(" ");
    const time = comparable(line.slice(0, blank));
    if (time === undefined || !this.#position.take(time)) return "";
    const text = this.#parts.secrets.mask(line.slice(blank + 1).replace(/\r$/, ""));
    const atUs = Date.parse(`${time.slice(0, 23)}Z`) * 1_000 + Number(time.slice(23, 26));
    return `${storedLine(this.#times.next(atUs), "stdout", text.slice(0, limits.logLineBytesMax))}\n`;
  }
}

/** Whether there is no such pod. A kubelet that has just started answers 404, too, for pods that it does not know yet. */
const isGone = (error: unknown): boolean => statusOf(error) === 404 && (error as Error).message.startsWith("pods ");

/** A time in UTC with all nine digits, so that later times are greater texts; undefined if it is none. */
function comparable(time: string): string | undefined {
  const [, seconds, fraction = "", zone = "Z"] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(time) ?? [];
  if (seconds === undefined) return undefined;
  const utc = zone === "Z" ? seconds : new Date(`${seconds}${zone}`).toISOString().slice(0, 19);
  return `${utc}.${fraction.padEnd(9, "0")}`;
}

/** The end of what is kept already: what follows was said while nobody read. Undefined if nothing is. */
async function keptEnd(logsDir: string, workerId: string): Promise<KeptEnd | undefined> {
  let kept: KeptEnd | undefined;
  for (const tail of [2, limits.podLogSoughtLines]) {
    const query = { tail, signal: new AbortController().signal };
    for await (const lines of readLogFiles(logsDir, workerId, query, () => true))
      kept = endOf(
        lines.map(({ atUs }) => atUs),
        lines.length < tail,
      );
    if (!kept || kept.sure) break;
  }
  return kept;
}

/**
 * A line whose own time is not after that of the line above has the next microsecond: see {@link LineTimes}. `isAll`:
 * there are no lines above these.
 */
function endOf(times: readonly number[], isAll: boolean): KeptEnd | undefined {
  const last = times.at(-1);
  if (last === undefined) return undefined;
  const at = times.findLastIndex((us, n) => (n === 0 ? isAll : us !== (times[n - 1] as number) + 1));
  return { lastUs: last, sure: at < 0 ? undefined : { us: times[at] as number, after: times.length - 1 - at } };
}
