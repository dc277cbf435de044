// Linux's figures about a process.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const ticksPerSecond = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));

function statusBytes(pid, name) {
  const [, kib] = new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) * 1_024;
}

export const residentBytes = (pid) => statusBytes(pid, "VmRSS");

/** The most resident memory since the last `forgetPeak`. */
export const peakBytes = (pid) => statusBytes(pid, "VmHWM");
export const forgetPeak = (pid) => writeFileSync(`/proc/${pid}/clear_refs`, "5");

/** The seconds of processor time that a process has used. */
export function cpuSeconds(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}
