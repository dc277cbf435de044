import { limits } from "../../limits/index.js";

const blankLines = ["\n\n", "\n\r\n", "\r\r"];
/** Characters before a cut that may begin a blank line. */
const edgeChars = 2;
const fields = [":", "data:", "event:", "id:", "retry:"];
const fieldChars = 6;
/** By the first character of a line, the field that the line must begin with to be part of an event. */
const fieldBy = new Map(fields.map((field) => [field.charCodeAt(0), field]));

/** Of all streams together. */
let charsHeldBack = 0;

/** Where the last complete event in a text ends; 0 if none does. */
const endOfEvents = (text: string): number =>
  Math.max(
    ...blankLines.map((blank) => {
      const at = text.lastIndexOf(blank);
      return at === -1 ? 0 : at + blank.length;
    }),
  );

/** Where the line at a place ends; undefined if it does not end. */
function endOfLine(text: string, at: number): number | undefined {
  for (let end = at; end < text.length; end++) {
    const code = text.charCodeAt(end);
    if (code === 10 || code === 13) return end + 1;
  }
  return undefined;
}

/**
 * Where the first line begins that may be part of an event; undefined if a line before it has not ended. A text may
 * have millions of lines.
 */
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
 * Text of server-sent events that arrives cut anywhere. Events are returned only whole: half an event would make what
 * follows unreadable if the worker failed in between. A line that is not part of an event is returned as it comes.
 * Nothing is scanned twice: a handler may output one character at a time. What is held back must be taken in the end.
 */
export class RawText {
  #held: string[] = [];
  #heldChars = 0;
  /** The last characters received of the current event. */
  #edge = "";
  /** Whether we are within a line that is not part of an event. */
  #isPassing = false;
  /** Whether the text returned ends within an event that was too long to hold back. */
  #isCut = false;

  get isEmpty(): boolean {
    return this.#heldChars === 0;
  }
  /** Whether the text returned ends within an event or a line. */
  get isInEvent(): boolean {
    return this.#isPassing || this.#isCut;
  }

  /** Adds text, and returns what can be sent now. */
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

  /** Takes the text held back. */
  take(): string {
    const held = this.#held.join("");
    this.#held = [];
    charsHeldBack -= this.#heldChars;
    this.#heldChars = 0;
    return held;
  }

  /** Starts over with what comes next. */
  reset(): void {
    this.#edge = "";
    this.#isPassing = false;
    this.#isCut = false;
  }

  /** Whether the text begins a line that is not part of an event, where an event could begin. */
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

  /** Holds text back; returns whole events, and an event that has become too long. */
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
    charsHeldBack += text.length - at;
    this.#edge = seen.slice(-edgeChars);
    const isTooLong = this.#heldChars > limits.openaiEventBytesMax || charsHeldBack > limits.openaiHeldCharsMax;
    this.#isCut ||= isTooLong;
    return { given: isTooLong ? this.take() : "", at: text.length };
  }
}

/** Text to send, and the position up to which the input was consumed. */
interface Given {
  readonly given: string;
  readonly at: number;
}
