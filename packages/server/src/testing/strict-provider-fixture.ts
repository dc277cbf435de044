import type { Exit, ProcessHandle } from "../domain/worker.js";
import type { Launch, Provider, Sighting } from "../provider.js";

type Verb = "start" | "look" | "stop" | "kill";

/** Workers that only exist in memory. It notes every call, and holds its caller to the contract's order. */
export class StrictProvider implements Provider {
  readonly launches: Launch[] = [];
  /** `start w`, `stop w`, `kill w` … in the order they came. */
  readonly calls: string[] = [];
  /** What a caller must never do: start twice, stop what never was, forget what runs. */
  readonly violations: string[] = [];
  readonly logTails = new Map<string, string>();
  readonly #seen = new Map<string, Exclude<Sighting, { state: "unknown" }>>();
  readonly #failing: { verb: Verb; sentence: string }[] = [];
  #listeners: ((workerId: string) => void)[] = [];
  #pids = 100;
  /** Whether a kill ends its worker at once, as it does but for processes that the system cannot end. */
  killEnds = true;

  /** The next call of this verb fails. */
  failNext(verb: Verb, sentence: string): void {
    this.#failing.push({ verb, sentence });
  }

  /** A worker's leader ends by itself. */
  end(workerId: string, exit: Partial<Exit> = {}): void {
    this.#seen.set(workerId, {
      state: "ended",
      exit: { code: undefined, signal: undefined, note: undefined, ...exit },
    });
    for (const listener of this.#listeners) listener(workerId);
  }

  /** Its keeper is gone, and knows of it no more. */
  vanish(workerId: string): void {
    this.#seen.delete(workerId);
  }

  /** The server that listened is gone. */
  disconnect(): void {
    this.#listeners = [];
  }

  isRunning = (workerId: string): boolean => this.#seen.get(workerId)?.state === "running";
  callsOf = (workerId: string): string[] =>
    this.calls.filter((call) => call.endsWith(` ${workerId}`)).map((call) => call.split(" ")[0] as string);
  secretOf = (workerId: string): string =>
    this.launches.find((launch) => launch.workerId === workerId)?.env.RUNPOD_AI_API_KEY ?? "";

  handleOf(): undefined {}

  async start(launch: Launch): Promise<ProcessHandle> {
    const { workerId } = launch;
    this.#note("start", workerId);
    if (this.#seen.has(workerId)) this.#violate(`${workerId} was started twice`);
    const handle = { pid: this.#pids++, startTime: "1" };
    this.launches.push(launch);
    this.#seen.set(workerId, { state: "running", handle });
    return handle;
  }

  async look(workerId: string): Promise<Sighting> {
    this.#note("look", workerId);
    return this.#seen.get(workerId) ?? { state: "unknown" };
  }

  async stop(workerId: string): Promise<void> {
    this.#note("stop", workerId);
    if (!this.#seen.has(workerId)) this.#violate(`${workerId} was stopped, and never started`);
  }

  async kill(workerId: string, handle: ProcessHandle | undefined): Promise<void> {
    this.#note("kill", workerId);
    if (!this.isRunning(workerId)) return;
    if (handle === undefined) this.#violate(`${workerId} was killed without its handle`);
    if (this.killEnds) this.end(workerId, { signal: "SIGKILL" });
  }

  async logTail(workerId: string): Promise<string> {
    return this.logTails.get(workerId) ?? "";
  }

  async forget(workerId: string): Promise<void> {
    if (this.isRunning(workerId)) this.#violate(`${workerId} was forgotten while it ran`);
    this.calls.push(`forget ${workerId}`);
  }

  onEnd(listener: (workerId: string) => void): void {
    this.#listeners.push(listener);
  }

  async leave(): Promise<void> {}

  #note(verb: Verb, workerId: string): void {
    this.calls.push(`${verb} ${workerId}`);
    const at = this.#failing.findIndex((failing) => failing.verb === verb);
    const [failing] = at < 0 ? [] : this.#failing.splice(at, 1);
    if (failing) throw new Error(failing.sentence);
  }

  #violate(sentence: string): never {
    this.violations.push(sentence);
    throw new Error(sentence);
  }
}
