/** Everything that a villain does. The words are the report's. */
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

/** Something bad that was done, to the service or to one worker's process. */
export interface Act {
  readonly act: ActName;
  readonly at: number;
  /** When it was over, where it takes its time; absent while it lasts. */
  untilAt?: number;
  readonly pid?: number;
  /** Which of the parties' connections. */
  readonly link?: Link;
}

/** Between whom a proxy of ours stands. */
export type Link = "clients" | "workers" | "database";

/** What was done, in order. */
export class ActLog {
  readonly all: Act[] = [];

  /** Notes what happens in a moment. */
  note(act: ActName, about: Pick<Act, "pid" | "link"> = {}): void {
    const at = Date.now();
    this.all.push({ act, at, untilAt: at, ...about });
  }

  /** Notes what begins now, and lasts. */
  begin(act: ActName, about: Pick<Act, "pid" | "link">): Act {
    const begun: Act = { act, at: Date.now(), ...about };
    this.all.push(begun);
    return begun;
  }

  /** Notes what begins now, and lasts until `work` is done. */
  async during(act: ActName, about: Pick<Act, "pid" | "link">, work: () => Promise<unknown>): Promise<void> {
    const begun = this.begin(act, about);
    await work();
    begun.untilAt = Date.now();
  }

  count(...names: readonly ActName[]): number {
    return this.all.filter(({ act }) => names.includes(act)).length;
  }
}
