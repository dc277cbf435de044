// The bench's progress: on a terminal one line that changes, elsewhere a line for each row.
export class Progress {
  #rows;
  #at = 0;
  #name = "";
  #beganAt = 0;

  constructor(rows) {
    this.#rows = rows;
  }

  begin(name) {
    this.#at += 1;
    this.#name = name;
    this.#beganAt = performance.now();
    this.say("setting up");
  }

  say(words) {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${this.#head()}: ${words}`);
    else if (words === "setting up") process.stderr.write(`${this.#head()} …\n`);
  }

  end() {
    const seconds = Math.round((performance.now() - this.#beganAt) / 1_000);
    process.stderr.write(`${process.stderr.isTTY ? "\r\x1b[K" : ""}${this.#head()}: measured in ${seconds} s\n`);
  }

  #head = () => `[${this.#at}/${this.#rows}] ${this.#name}`;
}
