import { readdirSync, readFileSync } from "node:fs";
import type { ProcessHandle } from "../../domain/worker.js";

interface Stat {
  readonly group: number;
  readonly startTime: string;
}

/** What /proc says of a process; undefined where there is none. The name may hold blanks and brackets: fields count from the last one. */
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

/** Whether the process of this handle still runs: the same id and the same start time. */
export const isAlive = (handle: ProcessHandle): boolean => statOf(handle.pid)?.startTime === handle.startTime;

/** Whether any process of a worker's group lives on, its leader or a child: told by the worker's id in its environment. */
function groupIsOurs(group: number, workerId: string): boolean {
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || statOf(pid)?.group !== group) continue;
    try {
      if (readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`RUNPOD_POD_ID=${workerId}`)) return true;
    } catch {
      // it ended meanwhile, or belongs to someone else
    }
  }
  return false;
}

/** Kills a worker's whole group, but only where it is certain that it is that worker's. */
export function killGroup(workerId: string, handle: ProcessHandle): void {
  if (!isAlive(handle) && !groupIsOurs(handle.pid, workerId)) return;
  try {
    process.kill(-handle.pid, "SIGKILL");
  } catch {
    // it ended meanwhile
  }
}
