import fs from "node:fs";
import os from "node:os";
import path from "node:path";

/** The inputs of a built handler. It is valid as long as every file still has the same content. */
export interface Recipe {
  /** Each file read, with its text; null for a file that was looked for and missing. */
  readonly files: Readonly<Record<string, string | null>>;
  /** Packages that the handler imports from where they are. */
  readonly packages: readonly string[];
}

interface Kept extends Recipe {
  readonly handler: string;
  readonly builder: string;
  readonly built: string;
}

const keptMs = 30 * 24 * 60 * 60 * 1_000;
const nameMaxLength = 120;

/**
 * Built handlers on disk, which save a start the build. Texts are compared whole: for a few small files that is exact,
 * and faster than loading a hash function (2 ms of a cold start).
 */
export class HandlerCache {
  readonly #directory: string;
  readonly #handler: string;
  readonly #builder: string;
  readonly #name: string;

  /** `builder` names everything else that affects a build: versions and settings. */
  constructor(handler: string, builder: string, directory = cacheDirectory()) {
    this.#directory = directory;
    this.#handler = handler;
    this.#builder = `${builder} ${process.version}`;
    // Two handlers may get the same name; then each finds the other's recipe and builds anew.
    this.#name = handler.replace(/[^a-zA-Z0-9]+/g, "-").slice(-nameMaxLength);
  }

  /** The path of the built handler, or undefined if there is none or something has changed since. */
  find(): string | undefined {
    try {
      const kept = JSON.parse(fs.readFileSync(this.#recipePath, "utf8")) as Kept;
      const built = path.join(this.#directory, path.basename(kept.built));
      const isSame =
        kept.handler === this.#handler &&
        kept.builder === this.#builder &&
        Object.entries(kept.files).every(([file, text]) => textOfFile(file) === text) &&
        [built, ...kept.packages].every((file) => fs.existsSync(file));
      return isSame ? built : undefined;
    } catch {
      return undefined;
    }
  }

  /**
   * Keeps a built handler and returns its path: a new one each time, because other workers may be loading an older
   * build.
   */
  keep(text: string, recipe: Recipe): string {
    this.#forgetOld();
    const built = path.join(this.#directory, `${this.#name}-${Date.now().toString(36)}-${process.pid}.mjs`);
    const kept: Kept = { handler: this.#handler, builder: this.#builder, built: path.basename(built), ...recipe };
    writeWhole(built, text);
    writeWhole(this.#recipePath, JSON.stringify(kept));
    return built;
  }

  get #recipePath(): string {
    return path.join(this.#directory, `${this.#name}.json`);
  }

  #forgetOld(): void {
    const oldest = Date.now() - keptMs;
    for (const name of fs.readdirSync(this.#directory)) {
      const file = path.join(this.#directory, name);
      if (/\.(json|mjs)$/.test(name) && (fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? oldest) < oldest) {
        fs.rmSync(file, { force: true });
      }
    }
  }
}

/** The text of a file, or null if it does not exist. */
export function textOfFile(file: string): string | null {
  try {
    return fs.readFileSync(file, "utf8");
  } catch {
    return null;
  }
}

/**
 * A directory that only this user can write to, because its content is run as code: `MILLRACE_CACHE_DIR`, otherwise a
 * directory in the temporary directory; if another user owns that, a new one for this start only.
 */
function cacheDirectory(env: NodeJS.ProcessEnv = process.env): string {
  const userId = process.getuid?.() ?? 0;
  const directory = env.MILLRACE_CACHE_DIR || path.join(os.tmpdir(), `millrace-cache-${userId}`);
  fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
  const { mode, uid } = fs.lstatSync(directory);
  const isOurs = env.MILLRACE_CACHE_DIR || process.platform === "win32" || (uid === userId && (mode & 0o077) === 0);
  return isOurs ? directory : fs.mkdtempSync(path.join(os.tmpdir(), "millrace-cache-"));
}

/** Replaces a file atomically: a worker that reads it at the moment sees the old or the new file, never a part. */
function writeWhole(file: string, text: string): void {
  const half = `${file}.${process.pid}.half`;
  fs.writeFileSync(half, text, { mode: 0o600 });
  fs.renameSync(half, file);
}
