/** Everything that a villain does. Reports use these names. */
export const actNames = [
  "worker killed",
  "worker stopped",
  "worker frozen",
  "keeper killed",
  "worker orphaned",
  "server killed",
  "server stopped",
  "connections reset",
  "connections half closed",
  "connections frozen",
  "connections slowed",
  "wall clock moved",
  "disk filled",
  "database connection ended",
  "database killed",
  "word told late",
] as const;
export type ActName = (typeof actNames)[number];

/** One act of harm, to the service or to one worker's process. */
export interface Act {
  readonly act: ActName;
  readonly at: number;
  /** When an act that takes time was over; absent while it lasts. */
  untilAt?: number;
  readonly pid?: number;
  /** Which parties' connections it affects. */
  readonly link?: Link;
}

/** The two parties that one of our proxies stands between. */
export type Link = "clients" | "workers" | "database";

/** All acts, in order. */
export class ActLog {
  readonly all: Act[] = [];

  /** Records an act that takes no time. */
  note(act: ActName, about: Pick<Act, "pid" | "link"> = {}): void {
    const at = Date.now();
    this.all.push({ act, at, untilAt: at, ...about });
  }

  /** Records the beginning of an act that lasts. */
  begin(act: ActName, about: Pick<Act, "pid" | "link">): Act {
    const begun: Act = { act, at: Date.now(), ...about };
    this.all.push(begun);
    return begun;
  }

  /** Records an act that lasts until `work` is done. */
  async during(act: ActName, about: Pick<Act, "pid" | "link">, work: () => Promise<unknown>): Promise<void> {
    const begun = this.begin(act, about);
    await work();
    begun.untilAt = Date.now();
  }

  count(...names: readonly ActName[]): number {
    return this.all.filter(({ act }) => names.includes(act)).length;
  }
}
