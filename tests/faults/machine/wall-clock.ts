import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The wall clock of a process that is started with `env`: it can be moved while the process runs. */
export class WallClock {
  readonly env: Readonly<Record<string, string>>;
  readonly #folder = mkdtempSync(join(tmpdir(), "millrace-clock-"));
  readonly #file: number;
  offsetMs = 0;

  constructor() {
    const shim = join(this.#folder, "clock.so");
    const path = join(this.#folder, "offset");
    const source = join(import.meta.dirname, "../shim/clock.c");
    const made = spawnSync("gcc", ["-shared", "-fPIC", "-O2", "-o", shim, source, "-ldl"], { encoding: "utf8" });
    if (made.status !== 0) throw new Error(`The clock's shim could not be compiled: ${made.stderr || made.error}`);
    this.#file = openSync(path, "w");
    this.set(0);
    this.env = { LD_PRELOAD: shim, MILLRACE_TEST_CLOCK: path };
  }

  /** Sets the wall clock's offset from the machine's clock, from now on. */
  set(offsetMs: number): void {
    this.offsetMs = offsetMs;
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(offsetMs));
    writeSync(this.#file, bytes, 0, bytes.length, 0);
  }

  end(): void {
    closeSync(this.#file);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
