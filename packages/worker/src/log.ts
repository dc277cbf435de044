/** Prints one line of a job's or the worker's log. Values that are not strings are printed as JSON. */
export interface Log {
  debug(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
}

type Level = keyof Log;

const levels: readonly Level[] = ["debug", "info", "warn", "error"];

/**
 * Writes lines `{"requestId","message","level"}`, by which the server assigns lines to jobs. `RUNPOD_DEBUG_LEVEL`
 * (DEBUG, INFO, WARN, ERROR; default INFO) is the lowest level written.
 */
export function openLog(requestId: string | null, write = writeToStdout): Log {
  const wanted = levels.indexOf(process.env.RUNPOD_DEBUG_LEVEL?.toLowerCase() as Level);
  const lowest = wanted < 0 ? levels.indexOf("info") : wanted;
  const line = (level: Level) => (values: unknown[]) => {
    if (levels.indexOf(level) < lowest) return;
    write(`${JSON.stringify({ requestId, message: values.map(words).join(" "), level: level.toUpperCase() })}\n`);
  };
  const [debug, info, warn, error] = [line("debug"), line("info"), line("warn"), line("error")];
  return {
    debug: (...values) => debug(values),
    info: (...values) => info(values),
    warn: (...values) => warn(values),
    error: (...values) => error(values),
  };
}

/** Writes why a job has failed. A terminal that shows how jobs end need not show it a second time. */
export function logFailure(requestId: string, error: string, write = writeToStdout): void {
  write(`${JSON.stringify({ requestId, message: error, level: "ERROR", outcome: "FAILED" })}\n`);
}

function writeToStdout(text: string): void {
  process.stdout.write(text);
}

function words(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Error) return value.stack ?? `${value.name}: ${value.message}`;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
