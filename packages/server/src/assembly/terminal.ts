import type { Clock } from "../clock.js";
import type { Config } from "../config.js";
import type { Emit } from "../events.js";
import { limits } from "../limits/index.js";
import { findJob } from "../operations/jobs/read-job.js";
import { followWorkerLog } from "../operations/logs/follow-logs.js";
import type { LogParts } from "../operations/logs/read-logs.js";
import { eventLog } from "../telemetry/log.js";
import { TerminalLog } from "../telemetry/terminal/terminal-log.js";

/** A worker's log ends by itself. */
const unending = new AbortController().signal;

/** Where events are told to people or programs; `connect` gives the terminal what its lines are made from. */
export interface EventOutput {
  readonly emit: Emit;
  connect(parts: LogParts): void;
  /** Resolves when what workers have printed is shown. */
  close(): Promise<void>;
}

/** Whether what is printed is for a person at a terminal, or for a program. */
export const isForPeople = ({ logFormat }: Pick<Config, "logFormat">): boolean =>
  logFormat === "lines" || (logFormat === "auto" && process.stdout.isTTY === true);

/** Lines for a person at a terminal, JSON lines for a program. */
export function openEventOutput(config: Config, clock: Clock): EventOutput {
  const { logLevel, packageAdvice } = config;
  if (!isForPeople(config) || logLevel === "silent")
    return { emit: eventLog(logLevel), connect: () => {}, close: async () => {} };
  let parts: LogParts | undefined;
  const { emit } = new TerminalLog({
    out: process.stdout,
    columns: Number(process.env.COLUMNS || 80),
    isVerbose: logLevel === "debug",
    isQuiet: logLevel === "warn" || logLevel === "error",
    packageAdvice,
    clock,
    endpointName: (id) => parts?.registry.endpoint(id)?.settings.name ?? parts?.registry.pod(id)?.settings.name,
    linesOf: (workerId) => linesOf(parts, workerId),
    errorOf: async (endpointId, jobId) => {
      const endpoint = parts?.registry.endpoint(endpointId);
      return parts && endpoint ? (await findJob(parts, endpoint, jobId)).error : undefined;
    },
  });
  return {
    emit,
    connect: (connected) => void (parts = connected),
    close: () => clock.sleep(limits.terminalHoldMs), // as long as lines take to get here
  };
}

async function* linesOf(parts: LogParts | undefined, workerId: string) {
  const worker = parts?.registry.worker(workerId);
  if (!parts || !worker) return;
  const ask = { tail: limits.logTailMax, sinceUs: undefined, jobId: undefined, after: undefined };
  const nothing = { first: undefined, lasts: new Map() };
  for await (const event of followWorkerLog(parts, worker, ask, nothing, unending))
    if (event.kind === "lines") yield event.lines;
}
