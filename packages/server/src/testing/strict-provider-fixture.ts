import { HiddenTexts, type LogLine, type LogStream } from "../domain/workers/log-line.js";
import type { Exit, WorkerHandle } from "../domain/workers/worker.js";
import type { LogQuery, Provider, Sighting, WorkerSpec } from "../provider.js";
import { wantedBy } from "../providers/log-files/reading.js";

type Verb = "start" | "look" | "pause" | "resume" | "stop" | "kill";

/** Workers that exist only in memory. Records every call, and checks that its caller keeps the contract's order. */
export class StrictProvider implements Provider {
  readonly launches: WorkerSpec[] = [];
  /** `start w`, `stop w`, `kill w` … in the order of the calls. */
  readonly calls: string[] = [];
  /**
   * Breaches of the contract: starting twice, stopping or pausing a worker that never started, forgetting a running
   * one.
   */
  readonly violations: string[] = [];
  readonly logTails = new Map<string, string>();
  readonly #logs = new Map<string, LogLine[]>();
  readonly #hidden = new Map<string, readonly string[]>();
  readonly #heard = new Set<() => void>();
  readonly #seen = new Map<string, Exclude<Sighting, { state: "unknown" }>>();
  readonly #paused = new Set<string>();
  readonly #failing: { verb: Verb; error: Error }[] = [];
  #listeners: ((workerId: string) => void)[] = [];
  #pids = 100;
  /** Further fields of its workers' handles. */
  traits: Omit<WorkerHandle, "provider" | "ref"> = {};
  /** Whether its workers have unique names, so that a worker that is not found certainly does not exist. */
  knowsAbsence = false;
  /** Whether a kill ends its worker at once; false simulates a process that the system cannot end. */
  killEnds = true;

  /** Makes the next call of this verb fail. */
  failNext(verb: Verb, why: string | Error): void {
    this.#failing.push({ verb, error: typeof why === "string" ? new Error(why) : why });
  }

  /** Ends a worker's leader by itself. */
  end(workerId: string, exit: Partial<Exit> = {}): void {
    this.#seen.set(workerId, {
      state: "ended",
      exit: { ...exit },
    });
    for (const listener of this.#listeners) listener(workerId);
    for (const wake of this.#heard) wake();
  }

  /** Makes a worker print a line at this millisecond. */
  say(workerId: string, at: number, text: string, stream: LogStream = "stdout"): void {
    const lines = this.#logs.get(workerId) ?? [];
    const atUs = Math.max(at * 1_000, (lines.at(-1)?.atUs ?? 0) + 1);
    const shown = new HiddenTexts(this.#hidden.get(workerId) ?? []).mask(text);
    this.#logs.set(workerId, [...lines, { workerId, atUs, stream, text: shown }]);
    for (const wake of this.#heard) wake();
  }

  /** The number of present followers of a log. */
  get followers(): number {
    return this.#heard.size;
  }

  /** Simulates that the keeper is gone and no longer knows the worker. */
  vanish(workerId: string): void {
    this.#seen.delete(workerId);
  }

  /** Simulates that the listening server is gone. */
  disconnect(): void {
    this.#listeners = [];
    this.#hidden.clear();
  }

  isPaused = (workerId: string): boolean => this.isRunning(workerId) && this.#paused.has(workerId);
  /** Called for each call as it comes. */
  onCall: (call: string) => void = () => {};
  isRunning = (workerId: string): boolean => this.#seen.get(workerId)?.state === "running";
  callsOf = (workerId: string): string[] =>
    this.calls.filter((call) => call.endsWith(` ${workerId}`)).map((call) => call.split(" ")[0] as string);
  secretOf = (workerId: string): string =>
    this.launches.find((launch) => launch.workerId === workerId)?.env.RUNPOD_AI_API_KEY ?? "";

  handleOf({ workerId }: WorkerSpec): WorkerHandle | undefined {
    return this.knowsAbsence ? { provider: "strict", ref: { name: workerId } } : undefined;
  }

  async start(launch: WorkerSpec): Promise<WorkerHandle> {
    const { workerId } = launch;
    this.#note("start", workerId);
    if (this.#seen.has(workerId)) this.#violate(`${workerId} was started twice`);
    const handle = { provider: "strict", ref: { pid: this.#pids++ }, ...this.traits };
    this.launches.push(launch);
    this.#seen.set(workerId, { state: "running", handle });
    return handle;
  }

  async look(workerId: string): Promise<Sighting> {
    this.#note("look", workerId);
    return this.#seen.get(workerId) ?? { state: "unknown", why: "its keeper was gone", isAbsent: this.knowsAbsence };
  }

  async pause(workerId: string): Promise<void> {
    this.#note("pause", workerId);
    if (!this.#seen.has(workerId)) this.#violate(`${workerId} was paused, and never started`);
    this.#paused.add(workerId);
  }

  async resume(workerId: string): Promise<void> {
    this.#note("resume", workerId);
    if (!this.#seen.has(workerId)) this.#violate(`${workerId} was resumed, and never started`);
    this.#paused.delete(workerId);
  }

  async stop(workerId: string): Promise<void> {
    this.#note("stop", workerId);
    if (!this.#seen.has(workerId)) this.#violate(`${workerId} was stopped, and never started`);
    this.#paused.delete(workerId);
  }

  async kill(workerId: string, handle: WorkerHandle | undefined): Promise<void> {
    this.#note("kill", workerId);
    if (!this.isRunning(workerId)) return;
    if (handle === undefined) this.#violate(`${workerId} was killed without its handle`);
    if (this.killEnds) this.end(workerId, { signal: "SIGKILL" });
  }

  async logTail(workerId: string): Promise<string> {
    return this.logTails.get(workerId) ?? "";
  }

  async *logs(workerId: string, _handle: unknown, query: LogQuery): AsyncGenerator<readonly LogLine[]> {
    const { tail = Number.POSITIVE_INFINITY, follow, signal } = query;
    const isWanted = wantedBy(query);
    const lines = () => this.#logs.get(workerId) ?? [];
    let at = lines().length;
    const there = lines().filter(isWanted);
    const last = there.slice(Math.max(0, there.length - tail));
    if (last.length > 0) yield last;
    let wake = () => {};
    const onHeard = () => wake();
    this.#heard.add(onHeard);
    signal.addEventListener("abort", onHeard);
    try {
      while (follow && !signal.aborted) {
        const come = lines().slice(at).filter(isWanted);
        at = lines().length;
        if (come.length > 0) yield come;
        else if (!this.isRunning(workerId)) return;
        else await new Promise<void>((heard) => (wake = heard));
      }
    } finally {
      signal.removeEventListener("abort", onHeard);
      this.#heard.delete(onHeard);
    }
  }

  async hide(workerId: string, secret: string): Promise<void> {
    this.#hidden.set(workerId, [...(this.#hidden.get(workerId) ?? []), secret]);
  }

  async forget(workerId: string): Promise<void> {
    if (this.isRunning(workerId)) this.#violate(`${workerId} was forgotten while it ran`);
    this.calls.push(`forget ${workerId}`);
  }

  onEnd(listener: (workerId: string) => void): () => void {
    this.#listeners.push(listener);
    return () => void this.#listeners.splice(this.#listeners.indexOf(listener), 1);
  }

  async leave(): Promise<void> {}

  #note(verb: Verb, workerId: string): void {
    this.calls.push(`${verb} ${workerId}`);
    this.onCall(`${verb} ${workerId}`);
    const at = this.#failing.findIndex((failing) => failing.verb === verb);
    const [failing] = at < 0 ? [] : this.#failing.splice(at, 1);
    if (failing) throw failing.error;
  }

  #violate(sentence: string): never {
    this.violations.push(sentence);
    throw new Error(sentence);
  }
}
