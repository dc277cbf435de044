import { setTimeout as sleep } from "node:timers/promises";
import { commandOf, isAlive, type Leader, leadersOf, parentOf, signal } from "../machine/processes.js";
import type { Surroundings } from "./surroundings.js";

const deadMax = 20;
const stopMsMax = 3_000;
/** By this age a forked process has replaced its program. */
const startMs = 50;
/**
 * A worker that never pinged is not judged by its silence. So a worker that is to count as lost must be old enough to
 * have pinged even if connections froze during two of its pings.
 */
const pingedAfterMs = 12_000;

/** Acts against workers' processes. */
export class WorkerActs {
  readonly #around: Surroundings;
  readonly #stopped = new Set<number>();
  /** By process: a killed process may remain visible for a moment. */
  readonly #dead = new Map<number, Leader>();
  #reserved: number | undefined;
  #lastLeaders: { readonly at: number; readonly leaders: readonly Leader[] } = { at: 0, leaders: [] };

  constructor(around: Surroundings) {
    this.#around = around;
  }

  /** Kills one worker, or a few at the same moment. */
  kill(): void {
    const { random, acts } = this.#around;
    for (let left = random.pick([1, 1, 2, 3]); left > 0; left--) {
      const leader = this.#any();
      if (!leader) return;
      acts.note("worker killed", { pid: leader.pid });
      signal(leader.pid, "SIGKILL");
      this.#dead.set(leader.pid, leader);
    }
  }

  async stop(): Promise<void> {
    const leader = this.#any();
    if (!leader) return;
    const { pid } = leader;
    await this.#around.acts.during("worker stopped", { pid }, async () => {
      signal(pid, "SIGSTOP");
      this.#stopped.add(pid);
      await sleep(this.#around.random.whole(100, stopMsMax));
      if (this.#stopped.delete(pid)) signal(pid, "SIGCONT");
    });
  }

  /** Kills the process that owns the pipes of one host's workers: all of these workers are lost with it. */
  async killKeeper(): Promise<void> {
    const { random, acts } = this.#around;
    const leaders = this.#leaders();
    const keeper = leaders.length > 0 ? parentOf(random.pick(leaders).pid) : undefined;
    if (keeper === undefined || !/\/keeper(\.\w+)?\.js /.test(commandOf(keeper))) return;
    // It is stopped first, so that it cannot start a worker that this test does not see.
    signal(keeper, "SIGSTOP");
    await sleep(startMs);
    for (const { pid } of this.#look()) if (parentOf(pid) === keeper) acts.begin("worker orphaned", { pid });
    acts.note("keeper killed");
    signal(keeper, "SIGKILL");
  }

  /**
   * Keeps one worker of our SDK from harm until it is frozen. (A stock worker pings from another process, which would
   * go on.)
   */
  reserve(): void {
    const { stages, journal, acts } = this.#around;
    if (this.#reserved !== undefined && isAlive(this.#reserved)) return;
    const own = new Set(stages.filter(({ kind }) => kind === "own").map(({ endpoint }) => endpoint));
    const touched = new Set(acts.all.map(({ pid }) => pid));
    const isFit = ({ pid, endpoint }: Leader) => own.has(endpoint) && !touched.has(pid) && journal.of(pid).length > 0;
    this.#reserved = this.#leaders().find(isFit)?.pid;
  }

  /** The reserved worker, if it runs a job at this moment and has pinged. */
  busyAndOld(): number | undefined {
    this.reserve();
    const runs = this.#around.journal.of(this.#reserved ?? 0);
    const isOld = runs.some((run) => run.startedAt < Date.now() - pingedAfterMs);
    return isOld && runs.some(({ endedAt }) => endedAt === undefined) ? this.#reserved : undefined;
  }

  /** The leaders that are neither stopped nor reserved. */
  untouched(): Leader[] {
    const isSpared = (pid: number) => this.#stopped.has(pid) || this.#dead.has(pid) || pid === this.#reserved;
    return this.#leaders().filter(({ pid }) => !isSpared(pid) && isAlive(pid));
  }

  /** The leaders that were killed last. */
  dead(): Leader[] {
    return [...this.#dead.values()].slice(-deadMax);
  }

  release(): void {
    for (const pid of this.#stopped) signal(pid, "SIGCONT");
    this.#stopped.clear();
  }

  /** A scan of all processes costs more than a kill, so it is done only now and then. */
  #leaders(): readonly Leader[] {
    return Date.now() > this.#lastLeaders.at + 100 ? this.#look() : this.#lastLeaders.leaders;
  }

  #look(): readonly Leader[] {
    const leaders = leadersOf(this.#around.stages.map(({ endpoint }) => endpoint));
    this.#lastLeaders = { at: Date.now(), leaders };
    return leaders;
  }

  /**
   * Mostly a busy worker. A worker that has not ended a job is seldom harmed: kills at several starts in a row count as
   * a crash loop, which the service rightly slows down.
   */
  #any(): Leader | undefined {
    const { random, journal } = this.#around;
    const free = this.untouched();
    const proven = free.filter(({ pid }) => journal.of(pid).some(({ endedAt }) => endedAt !== undefined));
    const busy = proven.filter(({ pid }) => journal.of(pid).at(-1)?.endedAt === undefined);
    const dice = random.next();
    const choice = dice < 0.05 ? free : dice < 0.25 || busy.length === 0 ? proven : busy;
    return choice.length > 0 ? random.pick(choice) : undefined;
  }
}
