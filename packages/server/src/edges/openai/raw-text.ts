import { limits } from "../../limits/index.js";

const blankLines = ["\n\n", "\n\r\n", "\r\r"];
/** So much before a cut may be the beginning of a blank line. */
const edgeChars = 2;
const fields = [":", "data:", "event:", "id:", "retry:"];
const fieldChars = 6;
/** By the first character of a line, what it would have to begin with to be of an event. */
const fieldBy = new Map(fields.map((field) => [field.charCodeAt(0), field]));

/** Where the last whole event of a text ends; 0 where none does. */
const endOfEvents = (text: string): number =>
  Math.max(
    ...blankLines.map((blank) => {
      const at = text.lastIndexOf(blank);
      return at === -1 ? 0 : at + blank.length;
    }),
  );

/** Where the line ends that a place is in; undefined where it goes on. */
function endOfLine(text: string, at: number): number | undefined {
  for (let end = at; end < text.length; end++) {
    const code = text.charCodeAt(end);
    if (code === 10 || code === 13) return end + 1;
  }
  return undefined;
}

/** Where the first line begins that may be of an event, or that has not ended; undefined for the latter. A text may be of millions of lines. */
function endOfRun(text: string, at: number): number | undefined {
  let end = endOfLine(text, at);
  while (end !== undefined && end < text.length && !mayBeField(text, end)) end = endOfLine(text, end);
  return end;
}

function mayBeField(text: string, at: number): boolean {
  const field = fieldBy.get(text.charCodeAt(at));
  if (field === undefined) return false;
  return text.length - at < fieldChars ? true : text.startsWith(field, at);
}

/**
 * Text of server-sent events that comes cut anywhere. Whole events are given alone: half of one would make what follows it
 * unreadable, should the worker fail in between. A line that is no part of an event is given as it comes. What was looked
 * through is not looked through again: a handler may put out a character at a time.
 */
export class RawText {
  #held: string[] = [];
  #heldChars = 0;
  /** The last that came of the event. */
  #edge = "";
  /** Within a line that is no part of an event. */
  #isPassing = false;
  /** What was given ends within an event that was too long to be held. */
  #isCut = false;

  get isEmpty(): boolean {
    return this.#heldChars === 0;
  }
  /** Whether what was given ends within an event, or within a line. */
  get isInEvent(): boolean {
    return this.#isPassing || this.#isCut;
  }

  /** What is to be given now. */
  add(text: string): string {
    let given = "";
    let at = 0;
    while (at < text.length) {
      const rest = this.#isPassing || this.#isNoField(text, at) ? this.#pass(text, at) : this.#hold(text, at);
      given += rest.given;
      at = rest.at;
    }
    return given;
  }

  /** Takes what is held. */
  take(): string {
    const held = this.#held.join("");
    this.#held = [];
    this.#heldChars = 0;
    return held;
  }

  /** What comes now begins anew. */
  reset(): void {
    this.#edge = "";
    this.#isPassing = false;
    this.#isCut = false;
  }

  /** Whether a line comes that is not of an event, where one could begin. */
  #isNoField(text: string, at: number): boolean {
    if (this.#isCut || this.#heldChars > fieldChars) return false;
    const head = this.#held.join("") + text.slice(at, at + fieldChars);
    return !fields.some((field) => head.startsWith(field) || field.startsWith(head));
  }

  #pass(text: string, at: number): Given {
    const end = endOfRun(text, at);
    this.#isPassing = end === undefined;
    this.#edge = "";
    return { given: this.take() + text.slice(at, end), at: end ?? text.length };
  }

  /** Whole events are given, and what has become too long. */
  #hold(text: string, at: number): Given {
    const seen = this.#edge + text.slice(at);
    const end = endOfEvents(seen);
    if (end > 0) {
      const cut = at + end - this.#edge.length;
      const given = this.take() + text.slice(at, cut);
      this.reset();
      return { given, at: cut };
    }
    this.#held.push(text.slice(at));
    this.#heldChars += text.length - at;
    this.#edge = seen.slice(-edgeChars);
    this.#isCut ||= this.#heldChars > limits.openaiEventBytesMax;
    return { given: this.#heldChars > limits.openaiEventBytesMax ? this.take() : "", at: text.length };
  }
}

/** What is given of a text, up to a place in it. */
interface Given {
  readonly given: string;
  readonly at: number;
}
