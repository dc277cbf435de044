import type { Exit, ProcessHandle } from "../../packages/server/src/domain/worker.js";
import type { Launch } from "../../packages/server/src/provider.js";
import { StrictProvider } from "../../packages/server/src/testing/strict-provider-fixture.js";
import { WorkerDouble, type WorkerWorld } from "./worker-double.js";

/** The machine with its processes: a provider whose workers do something. It outlives the servers. */
export class Host extends StrictProvider {
  readonly #worldOf: (end: (code: number) => void) => WorkerWorld;
  readonly doubles = new Map<string, WorkerDouble>();

  constructor(worldOf: (end: (code: number) => void) => WorkerWorld) {
    super();
    this.#worldOf = worldOf;
  }

  get alive(): WorkerDouble[] {
    return [...this.doubles.values()].filter((double) => double.isAlive);
  }

  override async start(launch: Launch): Promise<ProcessHandle> {
    const handle = await super.start(launch);
    const { workerId, env } = launch;
    const world = this.#worldOf((code) => this.end(workerId, { code }));
    this.doubles.set(workerId, new WorkerDouble(workerId, env.RUNPOD_AI_API_KEY ?? "", world));
    return handle;
  }

  override async stop(workerId: string): Promise<void> {
    await super.stop(workerId);
    const double = this.doubles.get(workerId);
    if (double?.isAlive) double.terminate();
  }

  override end(workerId: string, exit: Partial<Exit> = {}): void {
    const double = this.doubles.get(workerId);
    if (!double?.isAlive) return;
    // only our own kill is a SIGKILL, and only who was asked to goes with 0
    double.die(exit.signal !== "SIGKILL" && exit.code !== 0);
    super.end(workerId, exit);
  }
}
