import type { JsonText } from "../../domain/jobs/job.js";
import { errorIn, type OpenAiError } from "../../domain/jobs/openai-error.js";
import { oneLine } from "../../domain/plain-text.js";
import {
  charactersIn,
  elementsOf,
  isJson,
  opensValue,
  partOf,
  startsWith,
  stringOf,
  textIn,
  wholeOf,
} from "../../json/json.js";
import { limits } from "../../limits/index.js";
import type { Chunk } from "../../operations/needs.js";
import { turns } from "../../turns.js";
import { RawText } from "./raw-text.js";

/** Text to send, and the error that ends the stream, if there is one. */
export interface Added {
  readonly text: string;
  readonly error?: OpenAiError | undefined;
}

const lane = ["events"] as const;
const done = "data: [DONE]\n\n";
const saysDone = (text: string): boolean => /^data: ?\[DONE\]/m.test(text);

/**
 * Turns a worker's output into the text of server-sent events. Strings are such text already, cut anywhere, and are
 * joined as they are. Anything else becomes the data of an event; each element of a list gets its own. However long an
 * output, its text is made a slice at a time, as the reader takes it.
 */
export class EventText {
  readonly #raw = new RawText();
  #hasObjects = false;
  #isDone = false;

  /** Whether the worker, or we, have announced the end of the stream. */
  get isDone(): boolean {
    return this.#isDone;
  }
  /** Whether the text returned so far ends within an event. */
  get isInEvent(): boolean {
    return this.#raw.isInEvent;
  }

  /** Adds chunks. A large value's pieces must come together. An error is the last. */
  addAll(chunks: readonly Pick<Chunk, "output" | "metrics">[]): AsyncGenerator<Added> {
    return joined(this.#addChunks(chunks));
  }

  /** Adds a JSON value. */
  add(json: JsonText): AsyncGenerator<Added> {
    return joined(this.#addJson(json));
  }

  /** The text left to send at the end. */
  end(): string {
    const tail = this.#takeTail();
    if (this.#isDone || (tail !== "" && !this.#hasObjects)) return tail;
    this.#isDone = true;
    return this.#hasObjects ? `${tail}${done}` : tail;
  }

  async *#addChunks(chunks: readonly Pick<Chunk, "output" | "metrics">[]): AsyncGenerator<Added> {
    let pieces: Uint8Array[] = [];
    for (const chunk of chunks) {
      if (turns.isOver) await turns.take(lane);
      const part = partOf(chunk);
      if (part && (part.isFirst ? opensValue(chunk.output) : pieces.length > 0)) {
        pieces.push(Buffer.from(JSON.parse(stringOf(chunk.output)) as string));
        if (!part.isLast) continue;
        const whole = await wholeOf(pieces);
        pieces = [];
        yield* this.#addPieced(whole);
      } else yield* this.#addJson(chunk.output);
    }
  }

  /** Adds a large value that was split on arrival. One that was no string came as pieces of its JSON. */
  async *#addPieced(whole: JsonText): AsyncGenerator<Added> {
    if (this.#raw.isEmpty && (await isJson(whole))) return yield* this.#addJson(whole);
    yield* this.#inTurns(this.#addRaw(textIn(whole)));
  }

  async *#addJson(json: JsonText): AsyncGenerator<Added> {
    if (!startsWith(json, "[")) return yield* this.#inTurns(this.#addValue(json));
    for (const element of (await elementsOf(json)) ?? []) yield* this.#inTurns(this.#addValue(element));
  }

  async *#inTurns(texts: Iterable<Added>): AsyncGenerator<Added> {
    for (const added of texts) {
      yield added;
      if (turns.isOver) await turns.take(lane);
    }
  }

  #addValue(json: JsonText): Iterable<Added> {
    const isString = startsWith(json, '"');
    if (json.length > limits.jsonThreadBytes)
      return isString ? this.#addRaw(charactersIn(json)) : this.#addLongObject(json);
    return isString ? this.#addRaw([JSON.parse(stringOf(json))]) : this.#addObject(stringOf(json));
  }

  *#addRaw(texts: Iterable<string>): Generator<Added> {
    for (const text of texts) {
      const given = this.#raw.add(text);
      if (saysDone(given)) this.#isDone = true;
      yield { text: given };
    }
  }

  *#addObject(json: string): Generator<Added> {
    if (json === "null" || this.#isDone) return; // nothing follows the end
    const error =
      json.length <= limits.errorCharsMax && json.includes('"error"') ? errorIn(JSON.parse(json)) : undefined;
    if (error) yield { text: "", error };
    else yield { text: `${this.#beginEvent()}${oneLine(json)}\n\n` };
  }

  *#addLongObject(json: JsonText): Generator<Added> {
    if (this.#isDone) return;
    yield { text: this.#beginEvent() };
    for (const text of textIn(json)) yield { text: oneLine(text) };
    yield { text: "\n\n" };
  }

  #beginEvent(): string {
    this.#hasObjects = true;
    const before = this.#takeTail();
    const isInEvent = before !== "" || this.#raw.isInEvent;
    this.#raw.reset();
    return `${before}${isInEvent ? "\n\n" : ""}data: `;
  }

  #takeTail(): string {
    const tail = this.#raw.take();
    if (saysDone(tail)) this.#isDone = true;
    return tail;
  }
}

/** Joins short texts, since a write costs more than they do. */
async function* joined(texts: AsyncIterable<Added>): AsyncGenerator<Added> {
  let text = "";
  for await (const added of texts) {
    text += added.text;
    if (added.error) return yield { text, error: added.error };
    if (text.length < limits.eventsTextBytes) continue;
    yield { text };
    text = "";
  }
  if (text !== "") yield { text };
}
