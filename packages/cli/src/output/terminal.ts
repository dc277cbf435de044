import type { Readable, Writable } from "node:stream";
import { styleText } from "node:util";
import { span } from "@millrace/api/words";
import { Presets, SingleBar } from "cli-progress";
import type { Ora } from "ora";
import { asCalled } from "../called.js";
import { exits, Failure } from "../exit.js";
import { clipped, colours, harmless } from "./plain.js";
import { type Column, tableText } from "./table.js";

/** What a person or a program reads: results on `out`, everything else on `err`. */
export interface Streams {
  readonly in: Readable;
  readonly out: Output;
  readonly err: Output;
}
type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

/** Writes results as a person or a program wants them. */
export class Terminal {
  readonly #streams: Streams;
  readonly isJson: boolean;
  readonly #called: string;
  #endBar = (): void => {};

  /** `name`: how `millrace` is called here. */
  constructor(streams: Streams, isJson: boolean, name = "millrace") {
    this.#streams = streams;
    this.isJson = isJson;
    this.#called = name;
  }

  /** How wide results may be. */
  get columns(): number {
    return this.#streams.out.columns || 80; // some terminals say 0
  }

  /** A result: the value as one line of JSON with `--json`, otherwise the text. */
  result(value: unknown, text: string): void {
    this.print(this.isJson ? JSON.stringify(value).replace(/[\x7f-\x9f]/g, escaped) : text);
  }

  /** A line of a command that goes on for as long as someone watches. */
  print(text: string): void {
    this.#write(this.#streams.out, text);
  }

  /** Texts of others may hold what a terminal would obey: on one, of their control characters only colours are left. */
  #write(output: Output, text: string): void {
    const shown =
      output.isTTY === true ? text.split(colours).map((part, n) => (n % 2 ? part : harmless(part))) : [text];
    output.write(`${shown.join("")}\n`);
  }

  /** Rows as a table, numbers to the right; `empty` says what fills it. */
  table<Row>(rows: readonly Row[], columns: readonly Column<Row>[], empty: string): void {
    if (this.isJson) {
      this.result(rows, "");
      return;
    }
    if (rows.length === 0) {
      this.say(empty);
      return;
    }
    this.print(this.tableText(rows, columns));
  }

  tableText<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
    const isForPerson = this.#streams.out.isTTY === true;
    return tableText(rows, columns, (title) => this.styled("dim", title), isForPerson ? this.columns : undefined);
  }

  /** A remark for people, who may paste the commands in it; programs read the result alone. */
  readonly say = (text: string): void => {
    this.#endBar(); // beside it, long lines would be cut
    this.#write(this.#streams.err, asCalled(text, this.#called));
  };

  /**
   * Asks before something is lost, and returns once the answer is yes. Ends the command where nobody can answer, with the
   * command that does not ask.
   */
  async confirm(loss: string, unasked: string): Promise<void> {
    const { in: input, err: output } = this.#streams;
    if (!("isTTY" in input && input.isTTY) || output.isTTY !== true || this.isJson)
      throw new Failure(exits.usage, loss, unasked);
    const { confirm, isCancel } = await import("@clack/prompts"); // few commands ask
    const answer = await confirm({ message: `${loss} Go on?`, initialValue: false, input, output });
    if (isCancel(answer) || !answer) throw new Failure(exits.interrupted, "Nothing was changed.");
  }

  /** One line that changes while something is awaited; nothing where no person looks. */
  live(): { show(text: string): void; end(): void } {
    const { err } = this.#streams;
    // a line that changes must know when it is full
    if (err.isTTY !== true || !err.columns || this.isJson) return { show: () => {}, end: () => {} };
    let line: Ora | undefined;
    let shown = "";
    let isOver = false;
    const begin = () => line && !isOver && !line.isSpinning && line.start(shown);
    // loaded only for who sees it: that takes longer than most commands
    void import("ora").then(({ default: ora }) => {
      const color = this.#isPlain(err) ? false : "cyan";
      line = ora({ stream: err as NodeJS.WriteStream, discardStdin: false, color });
      if (shown !== "") begin();
    });
    return {
      show: (text) => {
        shown = clipped(harmless(text), this.columns - spinnerWidth);
        if (line) line.text = shown;
        begin();
      },
      end: () => {
        isOver = true;
        line?.stop();
      },
    };
  }

  /** A bar for how much of something is done, with its rate and the time that is left; nothing where no person looks. */
  bar(total: number, done: number): { update(done: number): void; end(): void } {
    const { err } = this.#streams;
    if (err.isTTY !== true || this.isJson) return { update: () => {}, end: () => {} };
    const beganAt = performance.now();
    const beside = (now: number) => {
      const perMs = (now - done) / Math.max(1, performance.now() - beganAt);
      const left = perMs > 0 ? `${span((total - now) / perMs)} left` : ""; // before the first end nobody knows
      return { rate: (perMs * 1_000).toFixed(1), left };
    };
    const barsize = Math.min(40, Math.max(5, (err.columns || 80) - besideBar - 2 * `${total}`.length));
    const format = "{bar} {value}/{total}  {rate} a second  {left}";
    const bar = new SingleBar({ format, stream: err, hideCursor: true, barsize }, Presets.shades_classic);
    const end = () => {
      process.off("exit", end);
      this.#endBar = () => {};
      if (bar.isActive) bar.stop();
    };
    process.once("exit", end); // an interrupted command leaves the terminal as it was
    this.#endBar = end;
    bar.start(total, done, beside(done));
    return { update: (now) => bar.update(now, beside(now)), end };
  }

  /** Coloured on a terminal, unless the user wants no colours; `on` is where it will be written. */
  styled(style: "dim" | "red" | "green" | "yellow" | "bold", text: string, on: "out" | "err" = "out"): string {
    return styleText(style, text, { stream: this.#streams[on] as NodeJS.WriteStream });
  }

  #isPlain = (output: Output): boolean => styleText("dim", "x", { stream: output as NodeJS.WriteStream }) === "x";
}

/** What stands beside a bar, without its two counts. */
const besideBar = 38;

const escaped = (char: string): string => `\\u00${char.charCodeAt(0).toString(16)}`;

/** The live line's spinner, and the blank after it. */
const spinnerWidth = 3;
