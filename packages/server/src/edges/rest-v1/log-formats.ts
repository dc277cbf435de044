import { harmless } from "../../domain/plain-text.js";
import { invalid } from "../../errors.js";
import type { LogEvent } from "../../operations/logs/follow-logs.js";
import type { LogPage, ShownLine } from "../../operations/logs/read-logs.js";
import { slicesOf } from "../shared/logs/slices.js";
import { jsonType } from "../shared/replies/replies.js";

export interface Format {
  readonly type: string;
  /** The text of a page, a slice at a time. */
  readonly textsOf: (page: LogPage) => Iterable<string>;
}

const iso = (atUs: number) => new Date(atUs / 1_000).toISOString();

/** A line as JSON; absent fields are left out. */
const jsonOf = ({ atUs, workerId, stream, text, jobId, level, message }: ShownLine): string =>
  JSON.stringify({ at: iso(atUs), workerId, stream, text, jobId, level, message });

const asText = ({ atUs, workerId, stream, text }: ShownLine) =>
  `${iso(atUs)} ${workerId} ${stream} ${harmless(text)}\n`;

const formats: Readonly<Record<string, Format>> = {
  text: {
    type: "text/plain; charset=utf-8",
    textsOf: ({ lines, note }) => slicesOf(note === undefined ? "" : `# ${note}\n`, lines, asText),
  },
  ndjson: {
    type: "application/x-ndjson; charset=utf-8",
    textsOf: ({ lines, note }) =>
      slicesOf(note === undefined ? "" : `${JSON.stringify({ note })}\n`, lines, (line) => `${jsonOf(line)}\n`),
  },
};

/** One JSON object: lines of the container with their times, and our own notes. */
export const grouped: Format = {
  type: jsonType,
  *textsOf({ lines, note }) {
    let comma = "";
    yield* slicesOf('{"container":[', lines, ({ atUs, text }) => {
      const record = `${comma}${JSON.stringify(`${iso(atUs)} ${text}`)}`;
      comma = ",";
      return record;
    });
    yield `],"system":${JSON.stringify(note === undefined ? [] : [note])}}`;
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
