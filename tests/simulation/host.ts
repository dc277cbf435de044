import type { Exit, WorkerHandle } from "../../packages/server/src/domain/workers/worker.js";
import type { WorkerSpec } from "../../packages/server/src/provider.js";
import { StrictProvider } from "../../packages/server/src/testing/strict-provider-fixture.js";
import type { Random } from "../faults/random.js";
import type { Timeline } from "./clock.js";
import { WorkerDouble } from "./worker-double.js";
import type { WorkerWorld } from "./worker-world.js";

/** The machine's error if it cannot freeze or wake a worker at the moment: the server asks again. */
export const away = "it cannot be reached at the moment";

/** How long the machine takes to confirm that a worker is frozen or resumed. */
const answerMs = [0, 0, 3, 250] as const;

/** The machine with its processes: a provider whose workers run jobs. It outlives the servers. */
export class Host extends StrictProvider {
  readonly #worldOf: (end: (code: number) => void, launch: WorkerSpec) => WorkerWorld;
  readonly #wire: Timeline;
  readonly #random: Random;
  readonly doubles = new Map<string, WorkerDouble>();

  constructor(
    worldOf: (end: (code: number) => void, launch: WorkerSpec) => WorkerWorld,
    wire: Timeline,
    random: Random,
  ) {
    super();
    this.#worldOf = worldOf;
    this.#wire = wire;
    this.#random = random;
  }

  /** The change takes effect at once, but its confirmation may come later: the server may be dead by then. */
  #answer(): Promise<void> {
    return this.#wire.sleep(this.#random.pick(answerMs));
  }

  get alive(): WorkerDouble[] {
    return [...this.doubles.values()].filter((double) => double.isAlive);
  }

  override async start(launch: WorkerSpec): Promise<WorkerHandle> {
    const handle = await super.start(launch);
    const { workerId, env } = launch;
    const world = this.#worldOf((code) => this.end(workerId, { code }), launch);
    this.doubles.set(workerId, new WorkerDouble(workerId, env.RUNPOD_AI_API_KEY ?? "", world));
    return handle;
  }

  /** Calls `listener` when the next worker is frozen or resumed. */
  onNextFreeze(listener: () => void): void {
    this.onCall = (call) => {
      if (!/^(pause|resume) /.test(call)) return;
      this.onCall = () => {};
      listener();
    };
  }

  override async pause(workerId: string): Promise<void> {
    await super.pause(workerId);
    this.doubles.get(workerId)?.pause(true);
    await this.#answer();
  }

  override async resume(workerId: string): Promise<void> {
    await super.resume(workerId);
    this.doubles.get(workerId)?.pause(false);
    await this.#answer();
  }

  /** A paused worker is resumed to stop. */
  override async stop(workerId: string): Promise<void> {
    await super.stop(workerId);
    const double = this.doubles.get(workerId);
    double?.pause(false);
    if (double?.isAlive) double.terminate();
  }

  override end(workerId: string, exit: Partial<Exit> = {}): void {
    const double = this.doubles.get(workerId);
    if (!double?.isAlive) return;
    // Only the server's own kill is a SIGKILL, and only a worker that was asked to stop exits with 0.
    double.die(exit.signal !== "SIGKILL" && exit.code !== 0);
    super.end(workerId, exit);
  }
}
