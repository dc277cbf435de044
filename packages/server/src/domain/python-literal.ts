const depthMax = 50;
const escapes: Readonly<Record<string, string>> = {
  "\\": "\\",
  "'": "'",
  '"': '"',
  n: "\n",
  r: "\r",
  t: "\t",
  a: "\x07",
  b: "\b",
  f: "\f",
  v: "\v",
  "\n": "",
};
/** The number of hexadecimal digits that follow. */
const codes: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };
const words: readonly (readonly [word: string, value: boolean | null])[] = [
  ["None", null],
  ["True", true],
  ["False", false],
];

class Unreadable extends Error {}

/**
 * Reads the output of Python's `str` for a dict, a list or a plain value, the form in which some workers send errors.
 * Strict: undefined if any part of the text is something else, or if anything follows. Tuples become arrays, None
 * becomes null.
 */
export function readPythonLiteral(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: new Reader(text).whole() };
  } catch (error) {
    if (error instanceof Unreadable) return undefined;
    throw error;
  }
}

class Reader {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): unknown {
    const value = this.#value();
    this.#skipBlanks();
    if (this.#at < this.#text.length) throw new Unreadable();
    return value;
  }

  #value(): unknown {
    this.#skipBlanks();
    const c = this.#text[this.#at] ?? "";
    if (c === "'" || c === '"') return this.#string();
    if (c === "{") return this.#nested(() => this.#dict());
    if (c === "[") return this.#nested(() => this.#list("]").values);
    if (c === "(") return this.#nested(() => this.#tuple());
    for (const [word, value] of words) {
      if (this.#text.startsWith(word, this.#at) && !/\w/.test(this.#text[this.#at + word.length] ?? "")) {
        this.#at += word.length;
        return value;
      }
    }
    return this.#number();
  }

  #nested<T>(read: () => T): T {
    if (++this.#depth > depthMax) throw new Unreadable();
    this.#at++;
    const value = read();
    this.#depth--;
    return value;
  }

  #dict(): unknown {
    const entries: [string, unknown][] = [];
    while (!this.#ends("}")) {
      const name = this.#value();
      if (typeof name === "object" && name !== null) throw new Unreadable();
      this.#skipBlanks();
      if (this.#text[this.#at++] !== ":") throw new Unreadable();
      entries.push([String(name), this.#value()]);
      this.#comma("}");
    }
    return Object.fromEntries(entries);
  }

  #list(close: string): { values: unknown[]; hasComma: boolean } {
    const values: unknown[] = [];
    let hasComma = false;
    while (!this.#ends(close)) {
      values.push(this.#value());
      if (this.#comma(close)) hasComma = true;
    }
    return { values, hasComma };
  }

  /** `(1)` is a value in parentheses, not a tuple. */
  #tuple(): unknown {
    const { values, hasComma } = this.#list(")");
    return values.length === 1 && !hasComma ? values[0] : values;
  }

  #ends(close: string): boolean {
    this.#skipBlanks();
    if (this.#text[this.#at] !== close) return false;
    this.#at++;
    return true;
  }

  #comma(close: string): boolean {
    this.#skipBlanks();
    if (this.#text[this.#at] === ",") {
      this.#at++;
      return true;
    }
    if (this.#text[this.#at] !== close) throw new Unreadable();
    return false;
  }

  #skipBlanks(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at++;
  }

  #number(): number {
    const pattern = /-?(?:\d+\.\d*|\.\d+|\d+)(?:e[+-]?\d+)?(?![\w.])/iy;
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [];
    if (found === undefined) throw new Unreadable();
    this.#at += found.length;
    return Number(found);
  }

  #string(): string {
    const quote = this.#text[this.#at++] as string;
    let value = "";
    for (;;) {
      const c = this.#text[this.#at++];
      if (c === undefined || c === "\n") throw new Unreadable();
      if (c === quote) return value;
      value += c === "\\" ? this.#escape() : c;
    }
  }

  #escape(): string {
    const c = this.#text[this.#at++] ?? "";
    const plain = escapes[c];
    if (plain !== undefined) return plain;
    const octal = /[0-7]{1,3}/y;
    octal.lastIndex = this.#at - 1;
    const [digits] = octal.exec(this.#text) ?? [];
    if (digits !== undefined) {
      this.#at += digits.length - 1;
      return String.fromCharCode(Number.parseInt(digits, 8));
    }
    const length = codes[c];
    const hex = length === undefined ? "" : this.#text.slice(this.#at, this.#at + length);
    const code = Number.parseInt(hex, 16);
    if (hex.length !== length || !/^[\da-f]+$/i.test(hex) || code > 0x10ffff) throw new Unreadable();
    this.#at += hex.length;
    return String.fromCodePoint(code);
  }
}
