import { harmless } from "../../domain/plain-text.js";
import { invalid } from "../../errors.js";
import type { LogEvent } from "../../operations/logs/follow-logs.js";
import type { ShownLine } from "../../operations/logs/read-logs.js";
import { slicesOf } from "../shared/logs/slices.js";

export interface Format {
  readonly type: string;
  readonly note: (text: string) => string;
  readonly line: (line: ShownLine) => string;
}

const iso = (atUs: number) => new Date(atUs / 1_000).toISOString();

/** A line as JSON; absent fields are left out. */
const jsonOf = ({ atUs, workerId, stream, text, jobId, level, message }: ShownLine): string =>
  JSON.stringify({ at: iso(atUs), workerId, stream, text, jobId, level, message });

const formats: Readonly<Record<string, Format>> = {
  text: {
    type: "text/plain; charset=utf-8",
    note: (text) => `# ${text}\n`,
    line: ({ atUs, workerId, stream, text }) => `${iso(atUs)} ${workerId} ${stream} ${harmless(text)}\n`,
  },
  ndjson: {
    type: "application/x-ndjson; charset=utf-8",
    note: (note) => `${JSON.stringify({ note })}\n`,
    line: (line) => `${jsonOf(line)}\n`,
  },
};

export function formatOf(asked: string | undefined, accept = ""): Format {
  const name = asked ?? (/\bapplication\/(x-ndjson|ndjson|jsonl)\b/.test(accept) ? "ndjson" : "text");
  const format = Object.hasOwn(formats, name) ? formats[name] : undefined;
  if (!format) throw invalid("'format' must be text or ndjson.");
  return format;
}

/** The text of an event of a followed log, a slice at a time. */
export function eventTexts(event: LogEvent): Iterable<string> {
  if (event.kind === "note") return [`event: note\ndata: ${JSON.stringify({ note: event.text })}\n\n`];
  return slicesOf(
    "",
    event.lines,
    (line) => `event: line\nid: ${line.atUs}-${line.workerId}\ndata: ${jsonOf(line)}\n\n`,
  );
}
