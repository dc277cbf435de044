import { setTimeout as sleep } from "node:timers/promises";
import { type TestServer, until } from "../harness.js";
import type { Ledger } from "./clients.js";
import { isAlive, type Leader, leadersOf, signal } from "./processes.js";
import type { Random } from "./random.js";
import type { Run, Stage } from "./scene.js";

/** Something bad that was done, to the server or to one worker's process. */
export interface Act {
  readonly act: "server killed" | "worker killed" | "worker stopped" | "worker frozen" | "lie told";
  readonly at: number;
  readonly pid?: number;
}

interface Surroundings {
  readonly server: TestServer;
  readonly stages: readonly Stage[];
  readonly random: Random;
  readonly ledger: Ledger;
  readonly runs: () => Run[];
}

const awayMaxMs = 2_500;
const stopMaxMs = 3_000;
/** One that never pinged is not judged by its silence: a worker that is to be missed has to be older than that. */
const pingedAfterMs = 6_000;
/** What is promised, and some time for a machine that is busy. */
const missedWithinMs = 35_000 + 5_000;

/** Does to a service what operators, machines and kernels do, at moments that its seed chooses. */
export class Villain {
  readonly acts: Act[] = [];
  readonly #around: Surroundings;
  readonly #stopped = new Set<number>();
  readonly #waking: Promise<unknown>[] = [];

  constructor(around: Surroundings) {
    this.#around = around;
  }

  /** Kills, stops and lies as long as it may. `spares` the server where its restarts would hide what is to be seen. */
  async rage(goesOn: () => boolean, { spares = false }: { spares?: boolean } = {}): Promise<void> {
    const { random } = this.#around;
    while (goesOn()) {
      const dice = random.next();
      if (dice < 0.25 && !spares) await this.#killServer();
      else if (dice < 0.5) this.#killWorker();
      else if (dice < 0.75) this.#stopWorker();
      else await this.#lie();
      await sleep(random.whole(50, 800));
    }
  }

  /** Stops a busy worker for good: the service has to miss it by its silence. Says what went wrong, if anything did. */
  async freeze(): Promise<string | undefined> {
    const pid = await until(() => this.#busyAndOld(), 30_000).catch(() => undefined);
    if (pid === undefined) return undefined;
    this.#note("worker frozen", pid);
    signal(pid, "SIGSTOP");
    const frozenAt = Date.now();
    await this.rage(() => isAlive(pid) && Date.now() < frozenAt + missedWithinMs, { spares: true });
    if (!isAlive(pid)) return undefined;
    signal(pid, "SIGKILL");
    return `a frozen worker (${pid}) was still there ${Date.now() - frozenAt} ms later`;
  }

  /** Lets go of everything that is stopped. */
  async release(): Promise<void> {
    for (const pid of this.#stopped) signal(pid, "SIGCONT");
    await Promise.all(this.#waking);
  }

  count(act: Act["act"]): number {
    return this.acts.filter((each) => each.act === act).length;
  }

  /** The server, over the same directory; sometimes again while it starts. */
  async #killServer(): Promise<void> {
    const { server, random } = this.#around;
    this.#note("server killed");
    await server.kill();
    await sleep(random.chance(0.5) ? 0 : random.whole(0, awayMaxMs));
    const starts = [server.restart()];
    if (random.chance(0.3)) {
      await sleep(random.whole(10, 400));
      this.#note("server killed");
      const { pid } = server;
      signal(pid, "SIGKILL");
      await until(() => !isAlive(pid));
      starts.push(server.restart());
    }
    await Promise.all(starts);
  }

  #killWorker(): void {
    const leader = this.#anyLeader();
    if (!leader) return;
    this.#note("worker killed", leader.pid);
    signal(leader.pid, "SIGKILL");
  }

  #stopWorker(): void {
    const leader = this.#anyLeader();
    if (!leader) return;
    const { pid } = leader;
    this.#note("worker stopped", pid);
    signal(pid, "SIGSTOP");
    this.#stopped.add(pid);
    const wake = sleep(this.#around.random.whole(100, stopMaxMs)).then(() => {
      this.#stopped.delete(pid);
      signal(pid, "SIGCONT");
    });
    this.#waking.push(wake);
  }

  /** A worker reports on a job that another one holds, or that is over: it must be thanked, and nothing else. */
  async #lie(): Promise<void> {
    const { random, ledger, runs } = this.#around;
    const leaders = this.#untouched(); // a word in a frozen worker's name would be a sign of its life
    const alive = new Map(leaders.map((leader) => [leader.pid, leader]));
    const last = runs().slice(-20);
    const open = last.filter(({ pid, endedAt }) => endedAt === undefined && alive.has(pid));
    const job = random.pick(open.length > 0 && random.chance(0.8) ? open : last);
    const endpoint = ledger.submissions.find(({ key }) => key === job?.key)?.stage.endpoint;
    const liars = leaders.filter((leader) => leader.endpoint === endpoint && leader.worker !== job?.worker);
    if (!job || liars.length === 0) return;
    const { worker, env, pid } = random.pick(liars);
    const url = (env.RUNPOD_WEBHOOK_POST_OUTPUT ?? "").replace("$RUNPOD_POD_ID", worker).replace("$ID", job.job);
    const body = JSON.stringify({ output: { key: job.key, liar: worker } });
    this.#note("lie told", pid);
    try {
      const told = await fetch(`${url}&isStream=false`, { method: "POST", body, signal: AbortSignal.timeout(5_000) });
      if (![200, 503].includes(told.status)) ledger.complaints.push(`a result was answered ${told.status}`);
    } catch {
      // the server is away just now
    }
  }

  /** The leaders that are neither stopped nor frozen. */
  #untouched(): Leader[] {
    const frozen = new Set(this.acts.flatMap(({ act, pid }) => (act === "worker frozen" ? [pid] : [])));
    const leaders = leadersOf(this.#around.stages.map(({ endpoint }) => endpoint));
    return leaders.filter(({ pid }) => !this.#stopped.has(pid) && !frozen.has(pid));
  }

  #anyLeader(): Leader | undefined {
    const { random } = this.#around;
    const free = this.#untouched();
    const runs = this.#around.runs();
    const busy = free.filter(({ pid }) => runs.some((run) => run.pid === pid && run.endedAt === undefined));
    // one that has not begun is seldom touched: killed starts in a row are a crash loop, which is rightly slowed down
    const begun = free.filter(({ pid }) => runs.some((run) => run.pid === pid));
    const choice = [busy, begun, free][Math.floor(random.next() ** 3 * 3)]!;
    return choice.length > 0 ? random.pick(choice) : undefined;
  }

  /** A worker of our SDK (a stock one pings from another process, which would go on) that runs a job at this moment. */
  #busyAndOld(): number | undefined {
    const own = this.#around.stages.filter(({ kind }) => kind === "own").map(({ endpoint }) => endpoint);
    const leaders = new Set(leadersOf(own).map(({ pid }) => pid));
    const runs = this.#around.runs();
    const isOld = (pid: number) => runs.some((run) => run.pid === pid && run.startedAt < Date.now() - pingedAfterMs);
    const isFit = (pid: number) => leaders.has(pid) && !this.#stopped.has(pid) && isOld(pid);
    return runs.findLast(({ pid, endedAt }) => endedAt === undefined && isFit(pid))?.pid;
  }

  #note(act: Act["act"], pid?: number): void {
    this.acts.push({ act, at: Date.now(), ...(pid === undefined ? {} : { pid }) });
  }
}
