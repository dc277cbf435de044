import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Needs } from "../../operations/needs.js";
import { endWorker } from "../../operations/workers/worker-life.js";
import {
  left,
  type Provider,
  StartFailed,
  type StartPhase,
  StartUnsure,
  type Unplaced,
  type WorkerSpec,
} from "../../provider.js";
import { type Launch, type LaunchOptions, launchOf, whereIs } from "./launch.js";
import type { Tended } from "./tended.js";

type Starting = Needs<
  "jobs" | "reader" | "clock" | "ids" | "bell" | "registry" | "emit" | "vault" | "here" | "secrets"
>;

export interface StartOptions extends LaunchOptions {
  readonly provider: Provider;
}

/** Starts this host's workers. */
export class WorkerStarts {
  readonly #needs: Starting;
  readonly #options: StartOptions;
  readonly #tended: Tended;

  constructor(needs: Starting, options: StartOptions, tended: Tended) {
    this.#needs = needs;
    this.#options = options;
    this.#tended = tended;
  }

  /**
   * Starts a worker without waiting for it: its image may take minutes to pull, and other workers need care meanwhile.
   */
  begin(worker: LiveWorker): void {
    const { emit, bell } = this.#needs;
    const { known, starting } = this.#tended;
    const { id } = worker.row;
    known.add(id);
    const wanted = new AbortController();
    starting.set(id, wanted);
    void this.#start(worker, wanted.signal)
      .catch((error) => {
        if (wanted.signal.reason === left) return;
        emit({ type: "server.warning", message: `worker ${id} could not be started just now`, error });
      })
      .finally(() => {
        starting.delete(id);
        worker.doing = undefined;
        worker.unplacedSince = undefined;
        worker.fullSince = undefined;
        bell.ring("workers");
      });
  }

  async #start(worker: LiveWorker, signal: AbortSignal): Promise<void> {
    const secret = this.#needs.ids.secret(32);
    const launch = await launchOf(this.#needs, this.#options, worker, secret).catch((error) =>
      this.#fail(worker, error),
    );
    if (!launch) return;
    if (signal.reason === left) return;
    // another server may have ended it
    if (!(await this.#prepare(worker, launch, secret))) return this.#tended.forget(worker);
    try {
      await this.#run(worker, launch.spec, signal);
    } catch (error) {
      if (error instanceof StartUnsure) throw error; // what became of it is looked up, as after a crash of ours
      await this.#fail(worker, error);
    }
  }

  /** Stores its secret before its provider is asked for it; false if the worker has ended meanwhile. */
  async #prepare(worker: LiveWorker, { spec, workerUrl, address }: Launch, secret: string): Promise<boolean> {
    const { clock, registry, vault } = this.#needs;
    const { unstored } = this.#tended;
    const handle = this.#options.provider.handleOf(spec);
    // the row in memory has the secret even if the database does not
    unstored.set(worker.row.id, clock.now() + limits.netMs);
    const isPrepared = await registry.changeWorker(worker, {
      by: "prepare",
      secretHash: vault.hash(secret),
      ...(workerUrl === undefined ? {} : { workerUrl }),
      ...(address === undefined ? {} : { address }),
      ...(handle ? { handle } : {}),
    });
    unstored.delete(worker.row.id);
    return isPrepared;
  }

  async #run(worker: LiveWorker, spec: WorkerSpec, signal: AbortSignal): Promise<void> {
    const { clock, registry, emit, bell } = this.#needs;
    const { provider } = this.#options;
    const { id, endpointNo } = worker.row;
    const phases: { placedAt?: number; imageAt?: number; madeAt?: number } = {};
    const reached = (phase: StartPhase) => {
      phases[`${phase}At`] = clock.now();
    };
    const note = (doing: string, unplaced?: Unplaced) => {
      worker.doing = doing;
      const before = worker.unplacedSince;
      worker.unplacedSince = unplaced ? (before ?? clock.now()) : undefined;
      worker.fullSince = unplaced === "full" ? (worker.fullSince ?? clock.now()) : undefined;
      if (unplaced && before === undefined) bell.ring("workers");
    };
    const handle = await provider.start(spec, { note, reached, signal });
    const isStarted = await registry.changeWorker(worker, {
      by: "start",
      ...phases,
      ...whereIs(worker.row, handle),
      // a fast worker may ask for a job before its engine reports it as running
      startedAt: Math.min(clock.now(), worker.row.readyAt ?? Number.POSITIVE_INFINITY),
    });
    if (!isStarted) {
      await provider.kill(id, handle); // another server has ended it meanwhile
      return this.#tended.forget(worker);
    }
    const endpointId = registry.endpointByNo(endpointNo)?.id ?? "";
    emit({ type: "worker.started", endpointId, workerId: id, provider: handle.provider, ref: handle.ref });
  }

  async #fail(worker: LiveWorker, error: unknown): Promise<undefined> {
    const note = error instanceof Error ? error.message : String(error);
    const cause = error instanceof StartFailed ? { cause: error.blame } : {};
    await endWorker(this.#needs, worker, { note, ...cause }, "it could not be started");
    await this.#tended.forget(worker);
  }
}
