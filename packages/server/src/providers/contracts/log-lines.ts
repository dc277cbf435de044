import type { LogLine } from "../../domain/workers/log-line.js";
import type { LogQuery, Provider } from "../../provider.js";

/** The lines of a worker's log, as many as the query wants. */
export async function linesOf(provider: Provider, workerId: string, query: Partial<LogQuery> = {}): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  for await (const some of provider.logs(workerId, undefined, { signal: never, ...query })) lines.push(...some);
  return lines;
}

const never = new AbortController().signal;
/** The texts of lines. */
export const textsOf = (lines: readonly LogLine[]) => lines.map(({ text }) => text);

/** Follows a worker's log. */
export function follower(provider: Provider, workerId: string, query: Partial<LogQuery> = {}) {
  const leaving = new AbortController();
  const lines = provider.logs(workerId, undefined, { signal: leaving.signal, follow: true, ...query });
  const reader = lines[Symbol.asyncIterator]();
  const heard: LogLine[] = [];
  return {
    leave() {
      leaving.abort();
      void reader.return?.();
    },
    /** Resolves with all texts so far once one equals `text`, or when the log ends. */
    async until(text?: string): Promise<string[]> {
      while (text === undefined || !textsOf(heard).includes(text)) {
        const { done, value } = await reader.next();
        if (done) break;
        heard.push(...value);
      }
      return textsOf(heard);
    },
  };
}
