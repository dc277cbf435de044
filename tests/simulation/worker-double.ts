import { setMaxListeners } from "node:events";
import { appendChunk, finishJob } from "../../packages/server/src/operations/jobs/finish-job.js";
import { returnJobs, takeJobs, tookOver } from "../../packages/server/src/operations/jobs/take-jobs.js";
import type { LiveWorker } from "../../packages/server/src/operations/needs.js";
import { awaitStops, hearPing } from "../../packages/server/src/operations/workers/hear-ping.js";
import type { TakenJob } from "../../packages/server/src/store/index.js";
import { Broken, type Server, vault } from "./server.js";
import { fate, type Recipe } from "./worker-fate.js";
import type { WorkerWorld } from "./worker-world.js";

interface Run {
  isStopped: boolean;
}

const never = new Promise<never>(() => {});

/** A worker as its server sees it: it polls, runs, streams, reports and pings, well or badly. */
export class WorkerDouble {
  readonly id: string;
  readonly #secretHash: string;
  readonly #world: WorkerWorld;
  readonly #fate: ReturnType<typeof fate>;
  readonly #held = new Map<string, Run>();
  readonly #said = new Set<string>();
  readonly #lost = new Map<string, number>();
  readonly #connection = new AbortController();
  #faultAt = Number.NEGATIVE_INFINITY;
  #frozenAt: number | undefined;
  /** Since when its server has frozen it: that is not the worker's fault, and must not harm its jobs. */
  pausedAt: number | undefined;
  #wokeAt = Number.NEGATIVE_INFINITY;
  #isStopping = false;
  #isSilent = false;
  #diedByItself = false;
  #isWorking = 0;
  #runs = 0;
  heardAt: number;
  diedAt: number | undefined;

  constructor(id: string, secret: string, world: WorkerWorld) {
    this.id = id;
    this.#secretHash = vault.hash(secret);
    this.#world = world;
    this.#fate = fate(world.random);
    this.heardAt = world.timeline.now();
    setMaxListeners(0, this.#connection.signal);
    void this.#live();
  }

  // facts for the invariants

  get isAlive(): boolean {
    return this.diedAt === undefined;
  }
  /** Whether it has made a mistake since then that may lose a job. */
  isToBlame(since: number): boolean {
    const { timeline } = this.#world;
    const wasLongFrozen = this.#frozenAt !== undefined && timeline.now() - this.#frozenAt > 20_000;
    return this.#diedByItself || this.#isSilent || wasLongFrozen || this.#faultAt >= since;
  }
  get hasLeft(): boolean {
    return this.#connection.signal.aborted;
  }
  said = (jobId: string, output: string | undefined): boolean => this.#said.has(`${jobId} ${output}`);
  /** Since when it certainly does not work on a job that it holds according to the store; undefined while it may. */
  lostSince(jobId: string, takenAt: number, hasPinged: boolean): number | undefined {
    if (this.diedAt !== undefined) return this.diedAt;
    const lost = this.#lost.get(jobId);
    if (lost !== undefined && lost >= takenAt && !this.#held.has(jobId) && this.#fate.pings && !this.isQuiet)
      return lost;
    return hasPinged && this.isQuiet ? this.heardAt : undefined;
  }
  get isQuiet(): boolean {
    return this.#isSilent || this.#frozenAt !== undefined;
  }

  // events that happen to it

  /** Ends the process; messages that were sent still arrive. */
  die(isOwnDoing: boolean): void {
    this.#diedByItself = isOwnDoing;
    this.diedAt = this.#world.timeline.now();
    this.#world.timeline.stop();
    this.#connection.abort();
  }
  terminate(): void {
    this.#isStopping = true;
    if (this.#fate.obeysTerm) void this.#leave();
  }
  /** Makes it hang: it neither works nor sends anything from then on. */
  hang(): void {
    this.#isSilent = true;
    this.#hold();
  }
  freeze(): void {
    this.#frozenAt ??= this.#world.timeline.now();
    this.#hold();
  }
  /**
   * Frozen or resumed by its server, with all its processes. It sends nothing until it is resumed, and then reads the
   * answers that had arrived.
   */
  pause(isPaused: boolean): void {
    if (!this.isAlive || isPaused === (this.pausedAt !== undefined)) return;
    this.#world.note(`${this.id} ${isPaused ? "is frozen" : "goes on"}`);
    this.pausedAt = isPaused ? this.#world.timeline.now() : undefined;
    this.#hold();
  }
  #hold(): void {
    this.#wokeAt = this.#world.timeline.now();
    this.#world.timeline.isHeld = this.#isSilent || this.#frozenAt !== undefined || this.pausedAt !== undefined;
  }
  thaw(): void {
    if (this.#frozenAt !== undefined && this.isToBlame(Number.POSITIVE_INFINITY))
      this.#blame("it was stopped for long");
    this.#frozenAt = undefined;
    this.#hold();
  }

  // its own actions

  #blame(why: string): void {
    this.#faultAt = this.#world.timeline.now();
    this.#world.note(`${this.id}: ${why}`);
  }
  #happens(chance: number): boolean {
    return chance > 0 && !this.#world.isCalm() && this.#world.random.chance(chance);
  }
  #mishap(chance: number, why: string): boolean {
    const happens = this.#happens(chance);
    if (happens) this.#blame(why);
    return happens;
  }
  async #pause(ms: number): Promise<void> {
    await this.#world.timeline.sleep(ms);
  }
  /** Waits while the process is stopped; never resolves once it has ended. */
  async #go(): Promise<void> {
    if (!this.isAlive) return never;
    if (this.#world.timeline.isHeld) await this.#pause(0);
  }

  /** A poll that was held is repeated at once; a poll that was not would spin. */
  async #pauseAfter(askedAt: number): Promise<void> {
    await this.#pause(this.#world.timeline.now() - askedAt > 1_000 ? 2 : 900);
  }

  async #live(): Promise<void> {
    await this.#pause(this.#fate.startMs);
    if (this.#world.diesAtStart()) return this.#world.end(1);
    if (this.#fate.pings) void this.#ping();
    if (this.#fate.obeysStops) void this.#hearStops();
    await this.#work();
  }

  async #leave(): Promise<void> {
    while (this.#isWorking > 0) await this.#pause(200);
    await this.#pause(800);
    this.#world.end(0);
  }

  /** Calls the server with its secret; undefined if there was no answer, or none that it understands. */
  async #call<T>(operation: (server: Server, worker: LiveWorker) => Promise<T>): Promise<T | undefined> {
    try {
      return await this.#world.ask(async (server) => {
        const worker = server.parts.registry.worker(this.id);
        if (worker?.row.secretHash !== this.#secretHash) return undefined;
        if (this.isAlive) this.heardAt = this.#world.wire.now();
        return operation(server, worker);
      });
    } catch (error) {
      if (error instanceof Broken) return undefined;
      throw error;
    } finally {
      await this.#go();
    }
  }

  async #work(): Promise<void> {
    while (!(this.#isStopping && this.#fate.obeysTerm)) {
      if (this.#isWorking >= this.#fate.slots) {
        await this.#pause(50);
        continue;
      }
      const askedAt = this.#world.timeline.now();
      const jobs = await this.#take();
      if (!jobs?.length) await this.#pauseAfter(askedAt);
      for (const job of jobs ?? []) {
        if (this.#fate.slots === 1) await this.#run(job);
        else void this.#run(job);
      }
    }
  }

  async #take(): Promise<TakenJob[] | undefined> {
    const isEmpty = this.#held.size === 0;
    const holdsNothing = isEmpty || this.#mishap(this.#fate.deniesJobs, "it reports that it holds nothing");
    const count = this.#fate.slots - this.#isWorking;
    const gone = this.#connection.signal;
    const jobs = await this.#call(async ({ parts }, worker) => {
      const taken = await takeJobs(parts, { worker, count, holdsNothing, gone });
      if (taken.length > 0 && gone.aborted) {
        await returnJobs(parts, worker, taken);
        return [];
      }
      tookOver(worker, taken);
      return taken;
    });
    if (jobs === undefined) this.#blame("its poll had no answer");
    if (jobs && jobs.length > 0 && this.#mishap(this.#fate.dropsAnswer, "it throws an answer away")) {
      for (const { id } of jobs) this.#lost.set(id, this.#world.timeline.now());
      return [];
    }
    return jobs;
  }

  async #run(job: TakenJob): Promise<void> {
    const recipe: Recipe = JSON.parse(job.input as string); // inputs here are small
    const name = `${this.id}/${++this.#runs}`;
    const run: Run = { isStopped: false };
    this.#held.set(job.id, run);
    this.#isWorking++;
    for (let n = 0; n < recipe.chunks && !run.isStopped; n++) {
      await this.#pause(recipe.ms / (recipe.chunks + 1));
      if (!run.isStopped) await this.#tell(appendChunk, job.id, { output: `${name}/${n}` });
    }
    await this.#pause(recipe.ms / (recipe.chunks + 1));
    if (!run.isStopped && recipe.ends === "crash") return this.#world.end(139);
    if (!run.isStopped && recipe.ends === "none") await this.#untilStopped(run);
    if (!run.isStopped) await this.#report(job.id, recipe.ends === "error" ? { error: name } : { output: name });
    if (this.#held.get(job.id) === run) this.#held.delete(job.id);
    this.#isWorking--;
  }

  async #untilStopped(run: Run): Promise<void> {
    while (!run.isStopped) await this.#pause(1_000);
  }

  async #report(jobId: string, word: { output?: string; error?: string }): Promise<void> {
    if (this.#mishap(this.#fate.losesResult, `it loses the result of ${jobId}`)) {
      this.#lost.set(jobId, this.#world.timeline.now());
      return;
    }
    this.#said.add(`${jobId} ${word.output === undefined ? undefined : JSON.stringify(word.output)}`);
    while (!(await this.#tell(finishJob, jobId, word))) {
      if (!this.#fate.keepsResults) {
        this.#lost.set(jobId, this.#world.timeline.now());
        return this.#blame(`the result of ${jobId} was refused`);
      }
      await this.#pause(1_000);
    }
    if (this.#mishap(this.#fate.repeatsResult, `it repeats the result of ${jobId}`))
      void this.#tell(finishJob, jobId, word);
  }

  /** Sends a report, which may arrive after its worker has ended. */
  async #tell(say: typeof finishJob, jobId: string, word: object): Promise<boolean> {
    const body = Buffer.from(JSON.stringify(word));
    if (this.#fate.wireMs > 0) await this.#world.wire.sleep(this.#world.random.whole(0, this.#fate.wireMs));
    const heard = await this.#call(async ({ parts }, worker) => {
      if (worker.row.endedAt === undefined) await say(parts, worker, jobId, body);
      return true;
    });
    return heard === true;
  }

  async #ping(): Promise<void> {
    for (let left = 0; ; ) {
      const list = new Set(this.#held.keys());
      left = list.size > 0 && this.#happens(this.#fate.forgetsInPings) ? left + 1 : 0;
      if (left > 0) list.clear();
      // a single late ping costs nothing; but the first ping after it stood still may lack a job that was on its way
      if (left > 1 || (left === 1 && this.#wokeAt > this.#world.timeline.now() - 10_000))
        this.#blame("it leaves its jobs out of two pings");
      if (this.#mishap(this.#fate.listsStrangers, "it lists a job that it never had")) list.add("stranger-u1");
      await this.#call(async ({ parts }, worker) => {
        if (worker.row.endedAt === undefined) await hearPing(parts, worker, list);
      });
      await this.#pause(4_000);
    }
  }

  async #hearStops(): Promise<void> {
    for (;;) {
      const askedAt = this.#world.timeline.now();
      const stops = await this.#call(({ parts }, worker) => awaitStops(parts, worker, this.#connection.signal));
      for (const id of stops ?? []) {
        const run = this.#held.get(id);
        if (run) run.isStopped = true;
        this.#held.delete(id);
      }
      if (!stops?.length) await this.#pauseAfter(askedAt);
      if (this.#isStopping && this.#fate.obeysTerm) return;
    }
  }
}
