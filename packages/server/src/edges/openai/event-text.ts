import { errorIn, type OpenAiError } from "../../domain/jobs/openai-error.js";
import { oneLine } from "../../domain/plain-text.js";
import { elementsOf, isJsonText, pieceOf, stringOf } from "../../json/json.js";
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
 * joined as they are. Anything else becomes the data of an event; each element of a list gets its own.
 */
export class EventText {
  readonly #raw = new RawText();
  /** The beginning of a text that is arriving in parts. */
  #parted = "";
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

  async addAll(chunks: readonly Pick<Chunk, "output" | "metrics">[]): Promise<Added> {
    let text = "";
    for (const { output: json, metrics } of chunks) {
      if (turns.isOver) await turns.take(lane);
      const output = stringOf(json);
      const piece = pieceOf(output, metrics);
      const added = piece ? await this.#addPiece(piece) : await this.add(output);
      text += added.text;
      if (added.error) return { text, error: added.error };
    }
    return { text };
  }

  /** Adds a JSON value. */
  async add(json: string): Promise<Added> {
    const first = json[0];
    if (first === '"') return { text: this.#addRaw(JSON.parse(json)) };
    if (first !== "[") return this.#addObject(json);
    let text = "";
    for (const element of (await elementsOf(json)) ?? []) {
      if (turns.isOver) await turns.take(lane);
      const added = element.startsWith('"') ? { text: this.#addRaw(JSON.parse(element)) } : this.#addObject(element);
      text += added.text;
      if (added.error) return { text, error: added.error };
    }
    return { text };
  }

  /** The text left to send at the end. */
  end(): string {
    const tail = this.#takeTail();
    if (this.#isDone || (tail !== "" && !this.#hasObjects)) return tail;
    this.#isDone = true;
    return this.#hasObjects ? `${tail}${done}` : tail;
  }

  /**
   * Adds a piece of a large value that was split on arrival. A value other than a string comes as pieces of its JSON.
   */
  async #addPiece({ text, isLast }: { text: string; isLast: boolean }): Promise<Added> {
    this.#parted += text;
    if (!isLast && this.#parted.length < limits.outputBytesMax) return { text: "" };
    const whole = this.#parted;
    this.#parted = "";
    return this.#raw.isEmpty && (await isJsonText(whole)) ? this.add(whole.trim()) : { text: this.#addRaw(whole) };
  }

  #addRaw(text: string): string {
    const given = this.#raw.add(text);
    if (saysDone(given)) this.#isDone = true;
    return given;
  }

  #addObject(json: string): Added {
    if (json === "null" || this.#isDone) return { text: "" }; // nothing follows the end
    const error =
      json.length <= limits.errorCharsMax && json.includes('"error"') ? errorIn(JSON.parse(json)) : undefined;
    if (error) return { text: "", error };
    this.#hasObjects = true;
    const before = this.#takeTail();
    const text = `${before}${before || this.#raw.isInEvent ? "\n\n" : ""}data: ${oneLine(json)}\n\n`;
    this.#raw.reset();
    return { text };
  }

  #takeTail(): string {
    const tail = this.#raw.take();
    if (saysDone(tail)) this.#isDone = true;
    return tail;
  }
}
