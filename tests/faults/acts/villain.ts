import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../harness.js";
import type { Post } from "../campaign/fleet.js";
import { isAlive, signal } from "../machine/processes.js";
import type { Random } from "../random.js";
import type { Deed } from "./deed.js";
import { tellLate } from "./late-words.js";
import { breakLink } from "./network-acts.js";
import { outsideActs } from "./outside-acts.js";
import { fillDisk, killServer, moveClock, stopServer } from "./server-acts.js";
import type { Surroundings } from "./surroundings.js";
import { WorkerActs } from "./worker-acts.js";

/** The promised bound, and much extra time for a busy machine: other tests check the bound itself. */
const missedWithinMs = 35_000 + 25_000;
const pauseMsMax = 150;

/** Does to a service what operators, machines, networks and kernels do, at times that its seed chooses. */
export class Villain {
  readonly #around: Surroundings;
  readonly #workers: WorkerActs;
  readonly #deeds: readonly Deed[];
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(around: Surroundings) {
    this.#around = around;
    this.#workers = new WorkerActs(around);
    this.#deeds = [...this.#aboutWorkers(), ...this.#aboutServers(), ...outsideActs(around)];
  }

  /**
   * Does one act after another. With `spares`, servers are not taken away where their absence would hide a worker's
   * loss.
   */
  async rage(goesOn: () => boolean, { spares = false }: { spares?: boolean } = {}): Promise<void> {
    const { random } = this.#around;
    const deeds = this.#deeds.filter(({ hidesLosses }) => !(spares && hidesLosses));
    // However short the rage is, a server is killed in it.
    for (const deed of deeds) if (deed.isSure && !spares) this.#start(deed);
    while (goesOn()) {
      this.#workers.reserve();
      this.#start(weighted(deeds, random));
      this.#lookForFallen();
      await sleep(random.whole(0, pauseMsMax));
    }
  }

  /** Stops a busy worker for good: the service must detect its silence. Returns a sentence if it does not. */
  async freeze(): Promise<string | undefined> {
    await this.#settled();
    const { acts } = this.#around;
    const pid = await until(() => this.#workers.busyAndOld(), 30_000).catch(() => undefined);
    if (pid === undefined) return undefined;
    acts.note("worker frozen", { pid });
    signal(pid, "SIGSTOP");
    const frozenAt = Date.now();
    await this.rage(() => isAlive(pid) && Date.now() < frozenAt + missedWithinMs, { spares: true });
    if (!isAlive(pid)) return undefined;
    signal(pid, "SIGKILL");
    return `a frozen worker (${pid}) was still there ${Date.now() - frozenAt} ms later`;
  }

  /** Resumes everything that is stopped, and waits for the acts under way. */
  async release(): Promise<void> {
    this.#workers.release();
    await this.#settled();
    for (const { clock } of this.#around.fleet.posts) clock.set(0);
  }

  async #settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  #start({ act }: Deed): void {
    const done = Promise.resolve(act())
      .catch((error) => this.#around.ledger.complaints.push(`the villain failed: ${error}`))
      .finally(() => this.#underWay.delete(done));
    this.#underWay.add(done);
  }

  #aboutWorkers(): Deed[] {
    return [
      { weight: 50, act: () => this.#workers.kill() },
      { weight: 8, act: () => this.#workers.stop() },
      { weight: 12, act: () => tellLate(this.#around, this.#workers.untouched(), this.#workers.dead()) },
      { weight: 0.5, hidesLosses: true, act: () => this.#workers.killKeeper() },
    ];
  }

  #aboutServers(): Deed[] {
    const { fleet, random } = this.#around;
    const one = (act: (around: Surroundings, post: Post) => unknown) => () => {
      const up = fleet.posts.filter(({ isDown }) => !isDown);
      if (up.length > 0) return act(this.#around, random.pick(up));
    };
    return [
      { weight: 4 * fleet.posts.length, hidesLosses: true, isSure: true, act: one(killServer) },
      { weight: 1.5, hidesLosses: true, act: one(stopServer) },
      { weight: 2, act: one(moveClock) },
      { weight: 5, act: one((around, { clients }) => breakLink(around, "clients", clients)) },
      { weight: 5, act: one((around, { workers }) => breakLink(around, "workers", workers)) },
      { weight: fleet.disk === undefined ? 0 : 1, hidesLosses: true, act: () => fillDisk(this.#around) },
    ];
  }

  /** Servers must end only by our acts. */
  #lookForFallen(): void {
    const { fleet, ledger } = this.#around;
    for (const { server, isDown } of fleet.posts)
      if (!isDown && !isAlive(server.pid))
        ledger.complaints.push(`a server ended by itself: ${server.log().slice(-500)}`);
  }
}

function weighted(deeds: readonly Deed[], random: Random): Deed {
  let left = random.next() * deeds.reduce((sum, { weight }) => sum + weight, 0);
  return deeds.find(({ weight }) => (left -= weight) < 0) ?? deeds[0]!;
}
