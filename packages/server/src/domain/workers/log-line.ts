import { limits } from "../../limits/index.js";

/** Which of its two pipes a worker wrote to. */
export type LogStream = "stdout" | "stderr";

/** One line of a worker's output. */
export interface LogLine {
  readonly workerId: string;
  /** Microseconds since 1970, strictly increasing for one worker, so that a reader can resume from it. */
  readonly atUs: number;
  readonly stream: LogStream;
  /** As the worker wrote it, with secrets masked and without its line break. */
  readonly text: string;
}

/** What a line says about itself: its job and its level. */
export interface LogMark {
  readonly jobId?: string;
  readonly level?: string;
  readonly message?: string;
}

const none: LogMark = {};
/** The stock worker's format if it does not know its endpoint. */
const plainForm = /^(NOTSET|TRACE|DEBUG|INFO|WARN|ERROR|TIP)\s*\| (?:([0-9a-z][0-9a-z-]{7,127}) \| )?/;
/** The beginning of a marked line whose end was cut off. */
const cutForm = /^\{"requestId":\s*"([^"\\]{1,128})"/;

/**
 * Reads a line's mark: `{"requestId","message","level"}`, as our SDK and the stock worker print, or `INFO   | id |
 * message`.
 */
export function markOf(text: string): LogMark {
  if (text.startsWith("{")) return text.includes('"requestId"') ? jsonMark(text) : none;
  const [head, level, jobId] = plainForm.exec(text) ?? [];
  if (head === undefined || level === undefined) return none;
  return { ...(jobId === undefined ? {} : { jobId }), level, message: text.slice(head.length) };
}

function jsonMark(text: string): LogMark {
  const said = parsed(text);
  if (said === undefined) {
    const jobId = cutForm.exec(text)?.[1];
    return jobId === undefined ? none : { jobId };
  }
  const { requestId, level, message } = said;
  return {
    ...(typeof requestId === "string" && requestId !== "" ? { jobId: requestId } : {}),
    ...(typeof level === "string" ? { level } : {}),
    ...(typeof message === "string" ? { message } : {}),
  };
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a line is marked as this job's. A line without the id is not parsed, because that is most lines. */
export const isOfJob = (text: string, jobId: string): boolean => text.includes(jobId) && markOf(text).jobId === jobId;

const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/**
 * The time that a caller names, in ms: an RFC 3339 time, Unix milliseconds, or how long ago (`90s`, `10m`, `2h`).
 * Undefined for anything else.
 */
export function momentOf(said: string, now: number): number | undefined {
  if (/^\d{1,15}$/.test(said)) return Number(said);
  const [, count, unit] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(said) ?? [];
  if (count !== undefined) return now - Number(count) * (units[unit as string] as number);
  if (!rfc3339.test(said)) return undefined;
  const at = Date.parse(said.replace(" ", "T"));
  return Number.isNaN(at) ? undefined : at;
}

const mask = "****";

/** The lines of a secret to mask one by one, because a log may show a key file line by line. Skips short lines. */
const linesOf = (secret: string): string[] =>
  secret
    .split(/[\r\n]+/, limits.secretLinesMax)
    .map((line) => line.trim())
    .filter((line) => line.length >= limits.secretCharsMin && line !== secret);

/** A secret's forms to mask, each also as JSON strings may escape it. */
interface Forms {
  readonly whole: readonly string[];
  readonly lines: readonly string[];
}

function formsOf(secret: string): Forms {
  let lines: readonly string[] | undefined; // most are never needed: see logSecretLinesMax
  return {
    whole: escaped([secret]),
    get lines() {
      lines ??= escaped(linesOf(secret));
      return lines;
    },
  };
}

function escaped(given: readonly string[]): readonly string[] {
  const texts = given.filter((text) => text !== "");
  const inJson = texts.map((text) => JSON.stringify(text).slice(1, -1));
  const inAscii = inJson.map((text) =>
    text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
  );
  const inHtml = inJson.map((text) => text.replaceAll("/", "\\/")); // PHP and others escape slashes, too
  return [...new Set([...texts, ...inJson, ...inAscii, ...inHtml])];
}

/** The texts to mask in a worker's log. Of its jobs' secrets only the newest are kept: a worker may run for ever. */
export class HiddenTexts implements Iterable<string> {
  /** Each text with its forms: computing them for each line costs more than searching for them. */
  readonly #own: ReadonlyMap<string, Forms>;
  readonly #ofJobs = new Map<string, Forms>();
  readonly #most: number;
  /** Undefined after a change, until they are needed. */
  #sorted: readonly string[] | undefined;

  /** `most`: how many secrets of jobs are kept. */
  constructor(own: Iterable<string>, most: number = limits.logSecretsMax) {
    this.#most = most;
    this.#own = new Map(Array.from(own, (text) => [text, formsOf(text)]));
  }

  /** How many UTF-16 units the longest of them has. */
  get longest(): number {
    return this.#forms[0]?.length ?? 0;
  }

  /** How many texts each line is searched for. */
  get size(): number {
    return this.#forms.length;
  }

  add(text: string): void {
    this.#ofJobs.delete(text);
    this.#ofJobs.set(text, formsOf(text));
    if (this.#ofJobs.size > this.#most) this.#ofJobs.delete(this.#ofJobs.keys().next().value as string);
    this.#sorted = undefined;
  }

  /** The text with every hidden text masked, also inside JSON strings. */
  mask(text: string): string {
    let shown = text;
    for (const form of this.#forms) if (shown.includes(form)) shown = shown.replaceAll(form, mask);
    return shown;
  }

  /** The longest first: a secret may begin with another one. Of the lines of jobs' secrets, the newest. */
  get #forms(): readonly string[] {
    if (this.#sorted) return this.#sorted;
    const forms = new Set<string>();
    let linesLeft: number = limits.logSecretLinesMax;
    for (const secret of [...this.#own.values(), ...[...this.#ofJobs.values()].reverse()]) {
      for (const form of secret.whole) forms.add(form);
      if (linesLeft === 0) continue;
      const lines = secret.lines.slice(0, linesLeft);
      for (const form of lines) forms.add(form);
      linesLeft -= lines.length;
    }
    this.#sorted = [...forms].sort((a, b) => b.length - a.length);
    return this.#sorted;
  }

  *[Symbol.iterator](): Iterator<string> {
    yield* this.#own.keys();
    yield* this.#ofJobs.keys();
  }
}
