import { readdirSync, readFileSync } from "node:fs";
import { realTime } from "../../clock.js";
import { limits } from "../../limits/index.js";

/** Identifies a process: its id together with its start time, so that a reused id is not mistaken for it. */
export interface ProcessId {
  readonly pid: number;
  /** Clock ticks since boot, as in /proc. */
  readonly startTime: string;
}

interface Stat {
  readonly group: number;
  readonly startTime: string;
}

/**
 * A process's entry in /proc; undefined if there is none. The name may contain blanks and parentheses, so fields are
 * counted after the last one.
 */
export function statOf(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return undefined;
    return { group: Number(fields[2]), startTime: fields[19] ?? "" };
  } catch {
    return undefined;
  }
}

/** Whether the process still runs: same pid and same start time. */
export const isAlive = (id: ProcessId): boolean => statOf(id.pid)?.startTime === id.startTime;

const pids = (): number[] => readdirSync("/proc").map(Number).filter(Number.isInteger);

/** The environment that a process was started with; empty if it has ended or belongs to another user. */
function environmentOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  } catch {
    return [];
  }
}

/** Carries the id of a worker whose program is told another one: of a pod's process, the pod's. */
export const workerIdName = "MILLRACE_WORKER_ID";

/** The environment entries with a worker's id: all of its processes carry one of them. */
export const idEntries = (workerId: string): string[] => [`RUNPOD_POD_ID=${workerId}`, `${workerIdName}=${workerId}`];

/**
 * Whether any process of a worker's group is alive, leader or child, recognised by the worker's id in its environment.
 */
const groupIsOurs = (group: number, workerId: string): boolean =>
  pids().some((pid) => statOf(pid)?.group === group && hasId(environmentOf(pid), workerId));

const hasId = (environment: readonly string[], workerId: string): boolean =>
  idEntries(workerId).some((entry) => environment.includes(entry));

/** Kills a worker's whole group, if it is certain that the group is the worker's. */
export function killGroup(workerId: string, id: ProcessId): void {
  if (!isAlive(id) && !groupIsOurs(id.pid, workerId)) return;
  try {
    process.kill(-id.pid, "SIGKILL");
  } catch {
    // it ended meanwhile
  }
}

/**
 * Kills every process except this one whose environment is `isMarked`, whatever session it has moved to. Repeats until
 * none is left, because processes may fork while the table is read.
 */
export async function endMarked(isMarked: (environment: readonly string[]) => boolean): Promise<void> {
  for (let round = 0; round < limits.sweepRoundsMax; round++) {
    const left = pids().filter((pid) => pid !== process.pid && isMarked(environmentOf(pid)));
    if (left.length === 0) return;
    for (const pid of left) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // it ended meanwhile
      }
    }
    await realTime.sleep(limits.sweepGapMs);
  }
}
