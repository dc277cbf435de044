import { chmodSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

/** A GPU of the fake; its index is its place in the list. */
export interface FakeGpu {
  readonly uuid: string;
  readonly name: string;
  /** Undefined: the GPU shares the machine's memory. */
  readonly memoryMib: number | undefined;
  readonly busId: string;
  readonly mig?: "Enabled" | "Disabled";
  readonly health?: "ok" | "reset" | "lost" | "unreachable";
}

/** The behaviour of the fake; `nvidia-smi.mjs` explains each value. */
export interface FakeState {
  readonly gpus: readonly FakeGpu[];
  readonly driver: string;
  readonly mode: "ok" | "no-driver" | "no-library" | "mismatch" | "nvml" | "hang" | "held" | "garbage" | "flood";
  readonly refused: readonly string[];
}

/** A GPU with this name and memory; equal numbers make equal GPUs. */
export function fakeGpu(no: number, name = "NVIDIA L4", memoryMib: number | undefined = 23_034): FakeGpu {
  const digits = String(no).padStart(12, "0");
  return { uuid: `GPU-5f1c3a9e-0000-4000-8000-${digits}`, name, memoryMib, busId: `0000:${10 + no}:00.0` };
}

/**
 * A program `nvidia-smi` in its own folder, strict in its arguments, with a state that tests may change at any time.
 * Put `bin` first in the PATH of a real server (`path` is such a PATH), or give `path` to an inventory.
 */
export class FakeNvidiaSmi {
  readonly bin: string;
  readonly #folder = mkdtempSync(join(tmpdir(), "millrace-nvidia-smi-"));
  #state: FakeState = { gpus: [], driver: "550.90.12", mode: "ok", refused: [] };

  constructor(state: Partial<FakeState> = {}) {
    this.bin = join(this.#folder, "bin");
    mkdirSync(this.bin);
    const words = [process.execPath, join(import.meta.dirname, "nvidia-smi.mjs"), this.#stateFile];
    const quoted = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
    writeFileSync(join(this.bin, "nvidia-smi"), `#!/bin/sh\nexec ${quoted} "$@"\n`);
    chmodSync(join(this.bin, "nvidia-smi"), 0o755);
    this.set(state);
  }

  get #stateFile(): string {
    return join(this.#folder, "state.json");
  }

  /** A PATH on which the fake comes first. */
  get path(): string {
    return `${this.bin}${delimiter}${process.env.PATH ?? ""}`;
  }

  get gpus(): readonly FakeGpu[] {
    return this.#state.gpus;
  }

  /** Changes its output from its next run on. */
  set(change: Partial<FakeState>): void {
    this.#state = { ...this.#state, ...change };
    writeFileSync(`${this.#stateFile}.new`, JSON.stringify(this.#state));
    renameSync(`${this.#stateFile}.new`, this.#stateFile);
  }

  /** Changes one of its GPUs. */
  change(no: number, change: Partial<FakeGpu>): void {
    this.set({ gpus: this.#state.gpus.map((gpu, index) => (index === no ? { ...gpu, ...change } : gpu)) });
  }

  /** The arguments of each run so far. */
  calls(): string[] {
    try {
      return readFileSync(`${this.#stateFile}.calls`, "utf8").split("\n").filter(Boolean);
    } catch {
      return [];
    }
  }

  /** The names of the variables in the environment of its last run. */
  environment(): string[] {
    return readFileSync(`${this.#stateFile}.environment`, "utf8").split("\n");
  }

  /** Ends the process that holds its pipes, and removes the fake. */
  remove(): void {
    try {
      process.kill(Number(readFileSync(`${this.#stateFile}.holder`, "utf8")), "SIGKILL");
    } catch {
      // There is no such process.
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
