import { invalid, type Refusal } from "../../../errors.js";
import { limits } from "../../../limits/index.js";
import { turns } from "../../../turns.js";

const lane = ["lists"] as const;

/** JSON overhead of a value: its name, quotes, a comma. */
const leafBytes = 24;

/**
 * Measures the reply to a query while it is made. Replies are bounded, long lists are made in turns, and a query with a
 * large reply waits for memory.
 */
export class Answer {
  /** Aborts when the reply exceeds its limit. */
  readonly over = new AbortController();
  readonly #takeRoom: (bytes: number) => Promise<void>;
  #room: Promise<void> | undefined;
  #entries = 0;
  #bytes = 0;
  #introspected = 0;

  constructor(takeRoom: (bytes: number) => Promise<void>) {
    this.#takeRoom = takeRoom;
  }

  get isLarge(): boolean {
    return this.#entries > limits.graphqlSmallEntries || this.#bytes > limits.graphqlSmallBytes;
  }

  /** Counts a field's value. */
  add(value: unknown): void {
    const bytes = leafBytes + (typeof value === "string" ? value.length : 0);
    this.#bytes += bytes;
    if (this.#bytes > limits.graphqlBytesMax) this.#refuse(tooLong());
  }

  /** Counts a field's value that tells of the schema, all of which are made in one turn. */
  addIntrospected(value: unknown): void {
    this.#introspected++;
    if (this.#introspected > limits.graphqlIntrospectedMax) this.#refuse(tooManyIntrospected());
    this.add(value);
  }

  /** A list whose entries are made a few per turn of the event loop. */
  async *list<T, View>(items: readonly T[], view: (item: T) => View): AsyncGenerator<View, void> {
    this.#count(items.length);
    for (const [n, item] of items.entries()) {
      if (n % limits.listSliceItems === 0) await this.#turn();
      yield view(item);
    }
  }

  /** An environment as a list of pairs. */
  async *pairs(env: Readonly<Record<string, string>>): AsyncGenerator<{ key: string; value: string }, void> {
    yield* this.list(Object.keys(env), (key) => ({ key, value: env[key] as string }));
  }

  /** Resolves when memory for the whole reply is reserved, if it is large. */
  async hasRoom(): Promise<void> {
    if (!this.isLarge) return;
    this.#room ??= this.#takeRoom(limits.graphqlLargeBytes);
    await this.#room;
  }

  #count(entries: number): void {
    this.#entries += entries;
    if (this.#entries > limits.graphqlEntriesMax) this.#refuse(tooMany());
  }

  async #turn(): Promise<void> {
    await this.hasRoom();
    if (turns.isOver) await turns.take(lane);
    this.over.signal.throwIfAborted();
  }

  #refuse(refusal: Refusal): never {
    this.over.abort(refusal);
    throw refusal;
  }
}

const tooMany = () =>
  invalid(`The query lists more than ${limits.graphqlEntriesMax} entries: ask for one list at a time.`);
const tooManyIntrospected = () =>
  invalid(
    `The query asks for more than ${limits.graphqlIntrospectedMax} values about the schema: ask for each type once, with fewer fields.`,
  );
const tooLong = () =>
  invalid(`The answer is longer than ${limits.graphqlBytesMax} bytes: ask for fewer fields or one list at a time.`);

/** The JSON of a reply in pieces, with turns for other work between them. */
export async function* jsonPieces(value: unknown): AsyncGenerator<string, void> {
  let text = "";
  for (const part of jsonTokens(value)) {
    text += part;
    if (text.length < limits.listSliceBytes) continue;
    yield text;
    text = "";
    if (turns.isOver) await turns.take(lane);
  }
  if (text !== "") yield text;
}

function* jsonTokens(value: unknown): Generator<string, void> {
  if (Array.isArray(value)) {
    yield "[";
    for (const [n, each] of value.entries()) {
      if (n > 0) yield ",";
      yield* jsonTokens(each);
    }
    yield "]";
  } else if (typeof value === "object" && value !== null) {
    yield "{";
    let isFirst = true;
    for (const [name, each] of Object.entries(value)) {
      if (each === undefined) continue;
      yield `${isFirst ? "" : ","}${JSON.stringify(name)}:`;
      yield* jsonTokens(each);
      isFirst = false;
    }
    yield "}";
  } else {
    yield JSON.stringify(value) ?? "null";
  }
}
