/** The position of a value in a text, in bytes. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export type Scan =
  | {
      readonly ok: true;
      readonly kind: "object" | "array" | "string" | "other";
      /** The wanted members of a top-level object, by decoded name; of equal names the last one counts, as usual. */
      readonly members: ReadonlyMap<string, Span>;
      /** The names of its other members, up to `othersMax`, and how many there are. */
      readonly others: readonly Span[];
      readonly othersCount: number;
      /** The elements of a top-level array, up to `elementsMax`. */
      readonly elements: readonly Span[];
      /** Runs of elements of a top-level array that fit in a piece; an element too long for one is a run of its own. */
      readonly runs: readonly Span[];
    }
  | { readonly ok: false; readonly at: number; readonly why: string };

export interface Bounds {
  readonly depthMax: number;
  readonly keysMax: number;
  /**
   * The wanted members of a top-level object. Others are not recorded, because the sender chooses how many there are.
   */
  readonly names: readonly string[];
  /** How many names of other members are recorded. */
  readonly othersMax?: number;
  /** How many elements of a top-level array are recorded. */
  readonly elementsMax?: number;
  /** The size of pieces in bytes, if a top-level array is to be split. */
  readonly pieceBytes?: number;
}

const expected = { value: 0, firstValue: 1, firstKey: 2, key: 3, colon: 4, comma: 5, done: 6 } as const;
const decoder = new TextDecoder();
/** The second byte of a short escape, and the character code that it stands for. */
const escapes = new Map([...'"\\/bfnrt'].map((c, n) => [c.charCodeAt(0), '"\\/\b\f\n\r\t'.charCodeAt(n)]));

class Malformed {
  readonly at: number;
  readonly why: string;
  constructor(at: number, why: string) {
    this.at = at;
    this.why = why;
  }
}

/**
 * Checks that UTF-8 bytes are one JSON text, in one pass, without recursion and without building it. Follows the strict
 * grammar of RFC 8259; Python's extensions (NaN, Infinity) are reported with their position.
 */
export function scanJson(bytes: Uint8Array, bounds: Bounds): Scan {
  try {
    return new Scanner(bytes, bounds).scan();
  } catch (error) {
    if (error instanceof Malformed) return { ok: false, at: error.at, why: error.why };
    throw error;
  }
}

class Scanner {
  readonly #b: Uint8Array;
  readonly #bounds: Bounds;
  #at = 0;
  #depth = 0;
  #keys = 0;
  readonly #members = new Map<string, Span>();
  readonly #others: Span[] = [];
  #othersCount = 0;
  readonly #elements: Span[] = [];
  readonly #runs: Span[] = [];

  constructor(bytes: Uint8Array, bounds: Bounds) {
    this.#b = bytes;
    this.#bounds = bounds;
  }

  scan(): Scan {
    const isObject: boolean[] = [];
    let expect: number = expected.value;
    let topKey: string | undefined;
    let topStart = 0;
    let kind: "object" | "array" | "string" | "other" = "other";
    for (;;) {
      const c = this.#skipBlanks();
      if (c === -1) {
        if (expect === expected.done) return this.#found(kind);
        throw new Malformed(this.#at, "the text ends too early");
      }
      const isEmpty = (expect === expected.firstValue && c === 0x5d) || (expect === expected.firstKey && c === 0x7d);
      if (isEmpty) {
        this.#at++;
        this.#depth--;
        expect = this.#ended(isObject, topKey, topStart);
        continue;
      }
      switch (expect) {
        case expected.firstValue:
        case expected.value: {
          if (this.#depth === 0) kind = c === 0x7b ? "object" : c === 0x5b ? "array" : c === 0x22 ? "string" : "other";
          if (this.#depth === 1) topStart = this.#at;
          if (c === 0x7b || c === 0x5b) {
            if (++this.#depth > this.#bounds.depthMax) {
              throw new Malformed(this.#at, `it is nested deeper than ${this.#bounds.depthMax} levels`);
            }
            isObject[this.#depth] = c === 0x7b;
            this.#at++;
            expect = c === 0x7b ? expected.firstKey : expected.firstValue;
            break;
          }
          this.#scalar(c);
          expect = this.#ended(isObject, topKey, topStart);
          break;
        }
        case expected.firstKey:
        case expected.key: {
          if (c !== 0x22) throw new Malformed(this.#at, "a name in quotes is missing");
          if (++this.#keys > this.#bounds.keysMax) {
            throw new Malformed(this.#at, `it has more than ${this.#bounds.keysMax} names`);
          }
          const start = this.#at;
          this.#string();
          if (this.#depth === 1) topKey = this.#name(start);
          expect = expected.colon;
          break;
        }
        case expected.colon:
          if (c !== 0x3a) throw new Malformed(this.#at, "a colon is missing");
          this.#at++;
          expect = expected.value;
          break;
        case expected.comma:
          if (c === 0x2c) {
            this.#at++;
            expect = isObject[this.#depth] ? expected.key : expected.value;
          } else if (c === (isObject[this.#depth] ? 0x7d : 0x5d)) {
            this.#at++;
            this.#depth--;
            expect = this.#ended(isObject, topKey, topStart);
          } else throw new Malformed(this.#at, "a comma or a closing bracket is missing");
          break;
        default:
          throw new Malformed(this.#at, "something follows after the end");
      }
    }
  }

  /**
   * Called after a value; returns what may come next. At depth 1, the value belongs to the top-level object or array.
   */
  #ended(isObject: readonly boolean[], topKey: string | undefined, topStart: number): number {
    if (this.#depth === 0) return expected.done;
    if (this.#depth === 1) {
      if (!isObject[1]) this.#element(topStart);
      else if (topKey !== undefined) this.#members.set(topKey, { start: topStart, end: this.#at });
    }
    return expected.comma;
  }

  #element(start: number): void {
    const end = this.#at;
    if (this.#elements.length < (this.#bounds.elementsMax ?? 0)) this.#elements.push({ start, end });
    const { pieceBytes } = this.#bounds;
    if (pieceBytes === undefined) return;
    const run = this.#runs.at(-1);
    if (run && end - run.start + 2 <= pieceBytes) this.#runs[this.#runs.length - 1] = { start: run.start, end };
    else this.#runs.push({ start, end });
  }

  #found(kind: "object" | "array" | "string" | "other"): Scan {
    const [members, others, othersCount] = [this.#members, this.#others, this.#othersCount];
    return { ok: true, kind, members, others, othersCount, elements: this.#elements, runs: this.#runs };
  }

  /** The name that ends here, if it is wanted. Others are never decoded, because an object may have very many. */
  #name(start: number): string | undefined {
    for (const name of this.#bounds.names) if (this.#isName(name, start)) return name;
    this.#othersCount++;
    if (this.#others.length < (this.#bounds.othersMax ?? 0)) this.#others.push({ start, end: this.#at });
    return undefined;
  }

  #isName(name: string, start: number): boolean {
    const b = this.#b;
    const end = this.#at - 1;
    let at = start + 1;
    let units = 0;
    while (units < name.length && at < end) {
      const c = b[at]!;
      const wanted = name.charCodeAt(units);
      if (c >= 0x80 && wanted >= 0x80) return name === JSON.parse(decoder.decode(b.subarray(start, end + 1)));
      if (wanted !== (c === 0x5c ? this.#escaped(at) : c)) return false;
      at += c !== 0x5c ? 1 : b[at + 1] === 0x75 ? 6 : 2;
      units++;
    }
    return units === name.length && at === end;
  }

  /** The UTF-16 unit that a well-formed escape stands for. */
  #escaped(at: number): number {
    const b = this.#b;
    const c = b[at + 1]!;
    if (c !== 0x75) return escapes.get(c)!;
    let unit = 0;
    for (let n = 2; n < 6; n++)
      unit = 16 * unit + (b[at + n]! <= 0x39 ? b[at + n]! - 0x30 : (b[at + n]! | 0x20) - 0x57);
    return unit;
  }

  #skipBlanks(): number {
    const b = this.#b;
    let at = this.#at;
    while (at < b.length) {
      const c = b[at]!;
      if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) {
        this.#at = at;
        return c;
      }
      at++;
    }
    this.#at = at;
    return -1;
  }

  #scalar(c: number): void {
    if (c === 0x22) this.#string();
    else if (c === 0x2d || (c >= 0x30 && c <= 0x39)) this.#number();
    else if (c === 0x74) this.#word("true");
    else if (c === 0x66) this.#word("false");
    else if (c === 0x6e) this.#word("null");
    else
      throw new Malformed(this.#at, c === 0x4e || c === 0x49 ? "NaN and Infinity are not JSON" : "a value is missing");
  }

  #word(word: string): void {
    for (let n = 0; n < word.length; n++) {
      if (this.#b[this.#at + n] !== word.charCodeAt(n)) throw new Malformed(this.#at, "a value is missing");
    }
    this.#at += word.length;
  }

  #number(): void {
    const b = this.#b;
    const start = this.#at;
    const digits = () => {
      const from = this.#at;
      while (b[this.#at]! >= 0x30 && b[this.#at]! <= 0x39) this.#at++;
      if (this.#at === from) throw new Malformed(start, "a number is malformed (NaN and Infinity are not JSON)");
    };
    if (b[this.#at] === 0x2d) this.#at++;
    if (b[this.#at] === 0x30) this.#at++;
    else digits();
    if (b[this.#at] === 0x2e) {
      this.#at++;
      digits();
    }
    if (b[this.#at] === 0x65 || b[this.#at] === 0x45) {
      this.#at++;
      if (b[this.#at] === 0x2b || b[this.#at] === 0x2d) this.#at++;
      digits();
    }
  }

  /** A loop over local variables, because a large text spends its time here. */
  #string(): void {
    const b = this.#b;
    const start = this.#at;
    let at = start + 1;
    for (;;) {
      const c = b[at];
      if (c === 0x22) break;
      if (c === undefined) throw new Malformed(start, "a string has no end");
      if (c < 0x20) throw new Malformed(at, "a string holds a control character");
      at += c === 0x5c ? this.#escape(at) : 1;
    }
    this.#at = at + 1;
  }

  /** The length of the escape at this position. */
  #escape(at: number): number {
    const b = this.#b;
    const c = b[at + 1] ?? 0;
    if (c === 0x75) {
      for (let n = 2; n < 6; n++) {
        const h = b[at + n] ?? 0;
        const isHex = (h >= 0x30 && h <= 0x39) || (h >= 0x41 && h <= 0x46) || (h >= 0x61 && h <= 0x66);
        if (!isHex) throw new Malformed(at, "an escape is malformed");
      }
      return 6;
    }
    if (!escapes.has(c)) throw new Malformed(at, "an escape is malformed");
    return 2;
  }
}
