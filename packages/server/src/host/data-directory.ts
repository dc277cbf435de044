import { randomBytes } from "node:crypto";
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

/** The service cannot start, for a reason that its operator can fix, in one sentence. */
export class StartError extends Error {}

export interface DataDirectory {
  readonly database: string;
  readonly lock: string;
  readonly logs: string;
  readonly homes: string;
  readonly volumes: string;
  /** Whether it was empty, so that this is the first start. */
  readonly isNew: boolean;
  /** Whether it has a file of this name. */
  holds(name: string): boolean;
  /** The text of a file with mode 0600, which is made if it is missing. */
  secret(name: string, make: () => string): string;
  /** Replaces a file. It is on disk when this returns, so that the database may rely on it. */
  keep(name: string, text: string): void;
  /** Deletes a file, if it is there. */
  discard(name: string): void;
  /** The text of a file; undefined if it is missing. */
  read(name: string): string | undefined;
  /** Replaces a file atomically, without waiting for the disk: after a power failure the change may be lost. */
  note(name: string, text: string): void;
}

/** Like `mkdir -p`, one directory at a time: Node's recursive form never returns below /proc. */
function makeFolders(path: string): void {
  if (existsSync(path)) return;
  makeFolders(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}

/** Replaces a file atomically and durably. */
function writeDurably(folder: string, name: string, text: string): void {
  const next = join(folder, `${name}.new`);
  writeFileSync(next, text, { mode: 0o600 });
  syncPath(next);
  renameSync(next, join(folder, name));
  syncPath(folder);
}

function syncPath(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Opens the directory that holds everything: directories have mode 0700, files 0600. */
export function openDataDirectory(path: string): DataDirectory {
  try {
    makeFolders(path);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    // 0700 protects all files that SQLite makes in it, whatever the umask
    chmodSync(path, 0o700);
    writeFileSync(join(path, ".writable"), "", { mode: 0o600 });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    throw new StartError(
      `The data directory ${path} cannot be written (${code}): set MILLRACE_DATA_DIR to a directory that can.`,
    );
  }
  const keep = (name: string, text: string) => writeDurably(path, name, `${text}\n`);
  const read = (name: string) => {
    try {
      return readFileSync(join(path, name), "utf8").trim();
    } catch {
      return undefined;
    }
  };
  const folder = (name: string) => {
    mkdirSync(join(path, name), { recursive: true, mode: 0o700 });
    return join(path, name);
  };
  return {
    database: join(path, "millrace.db"),
    lock: join(path, "lock"),
    isNew: !existsSync(join(path, "millrace.db")),
    logs: folder("logs"),
    homes: folder("homes"),
    volumes: folder("volumes"),
    keep,
    discard: (name) => rmSync(join(path, name), { force: true }),
    read,
    note(name, text) {
      const next = join(path, `${name}.new`);
      writeFileSync(next, `${text}\n`, { mode: 0o600 });
      renameSync(next, join(path, name));
    },
    holds: (name) => existsSync(join(path, name)),
    secret(name, make) {
      if (!existsSync(join(path, name))) keep(name, make());
      return readFileSync(join(path, name), "utf8").trim();
    },
  };
}

export const randomHex = (bytes: number): string => randomBytes(bytes).toString("hex");
