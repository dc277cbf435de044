import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { limits } from "../../limits/index.js";

/** Whether the worker of a log runs, has ended, or has no row any more. */
export type LogFate = "lives" | "ended" | "unknown";

interface Kept {
  readonly paths: string[];
  bytes: number;
  writtenAt: number;
}

const logName = /^([a-zA-Z0-9]+)\.log(\.1)?$/;

/** Deletes the logs of unknown workers, then of ended ones the oldest, until the rest fits within `bytesMax`. */
export async function pruneLogs(
  logsDir: string,
  fateOf: (workerId: string) => LogFate,
  bytesMax: number = limits.logsBytesMax,
): Promise<void> {
  const logs = await kept(logsDir);
  let bytes = 0;
  for (const { bytes: of } of logs.values()) bytes += of;
  const oldestFirst = [...logs].sort(([, one], [, other]) => one.writtenAt - other.writtenAt);
  for (const [workerId, log] of oldestFirst) {
    const fate = fateOf(workerId);
    if (fate === "lives" || (fate === "ended" && bytes <= bytesMax)) continue;
    for (const path of log.paths) await rm(path, { force: true });
    bytes -= log.bytes;
  }
}

/** The logs in a directory, by worker. */
async function kept(logsDir: string): Promise<Map<string, Kept>> {
  const logs = new Map<string, Kept>();
  for (const name of await readdir(logsDir).catch(() => [])) {
    const workerId = logName.exec(name)?.[1];
    if (workerId === undefined) continue; // not ours
    const path = join(logsDir, name);
    const seen = await stat(path).catch(() => undefined);
    if (!seen?.isFile()) continue;
    const log = logs.get(workerId) ?? { paths: [], bytes: 0, writtenAt: 0 };
    log.paths.push(path);
    log.bytes += seen.size;
    log.writtenAt = Math.max(log.writtenAt, seen.mtimeMs);
    logs.set(workerId, log);
  }
  return logs;
}
