import { readFileSync } from "node:fs";
import { limits } from "../limits/index.js";

/** How many connections may be open: each is a file, of which the system may allow the process only few. */
export function connectionsMax(): number {
  const files = openFilesMax();
  const left = Math.max(files - limits.filesReserved, Math.floor(files / 2));
  return Math.min(limits.connectionsMax, left);
}

/** How many files the process may have open, as far as the system tells. */
function openFilesMax(): number {
  try {
    const [, most] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return most === undefined ? Number.POSITIVE_INFINITY : Number(most);
  } catch {
    return Number.POSITIVE_INFINITY; // not on this system
  }
}
