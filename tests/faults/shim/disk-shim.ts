import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readSync, realpathSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The layout of `struct control` in disk-shim.c. */
const control = { failingSyncs: 0, isSmall: 4, room: 8, syncSuffix: 16, syncSuffixBytes: 48, bytes: 64 } as const;

/**
 * A folder whose files a process uses through the shim, which keeps a journal and fails operations as the test asks.
 */
export class ShimmedDisk {
  readonly #folder = realpathSync(mkdtempSync(join(tmpdir(), "millrace-disk-")));
  readonly dataDir = join(this.#folder, "data");
  readonly journal = join(this.#folder, "journal");
  readonly #library = join(this.#folder, "disk-shim.so");
  readonly #page = join(this.#folder, "control");
  readonly #control: number;
  readonly #marks: number;

  constructor() {
    const source = join(import.meta.dirname, "disk-shim.c");
    const flags = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"];
    execFileSync("gcc", [...flags, "-o", this.#library, source, "-ldl", "-lpthread"], { stdio: "pipe" });
    writeFileSync(this.#page, Buffer.alloc(control.bytes));
    this.#control = openSync(this.#page, "r+");
    this.#marks = openSync(this.journal, "a", 0o600);
  }

  /** The environment that puts a server's data directory on this disk. */
  get env(): Record<string, string> {
    return {
      MILLRACE_DATA_DIR: this.dataDir,
      LD_PRELOAD: this.#library,
      DISK_SHIM_FOLDER: this.dataDir,
      DISK_SHIM_JOURNAL: this.journal,
      DISK_SHIM_CONTROL: this.#page,
    };
  }

  /** Writes a mark of the test into the journal, after all operations so far. */
  mark(what: object): void {
    const text = Buffer.from(JSON.stringify(what));
    const head = Buffer.alloc(16);
    head.writeUInt32LE(head.length + text.length, 0);
    head.write("m", 4);
    writeSync(this.#marks, Buffer.concat([head, text]));
  }

  /** Makes the next `count` syncs fail (-1: all from now on; 0: none), only for file names with this suffix. */
  failSyncs(count: number, suffix = ""): void {
    const name = Buffer.alloc(control.syncSuffixBytes);
    name.write(suffix);
    writeSync(this.#control, name, 0, name.length, control.syncSuffix);
    this.#setInt(count, control.failingSyncs);
  }

  /** Sets the disk's free bytes from now on, to which removals add; `undefined`: the real disk's space. */
  setRoom(bytes: number | undefined): void {
    const room = Buffer.alloc(8);
    room.writeBigInt64LE(BigInt(bytes ?? 0));
    writeSync(this.#control, room, 0, room.length, control.room);
    this.#setInt(bytes === undefined ? 0 : 1, control.isSmall);
  }

  /** The rest of the free bytes that were set. */
  room(): number {
    const room = Buffer.alloc(8);
    readSync(this.#control, room, 0, room.length, control.room);
    return Number(room.readBigInt64LE());
  }

  end(): void {
    closeSync(this.#control);
    closeSync(this.#marks);
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }

  #setInt(value: number, at: number): void {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32LE(value);
    writeSync(this.#control, bytes, 0, bytes.length, at);
  }
}
