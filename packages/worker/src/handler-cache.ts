import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

/** What a built handler was made of. It is good for as long as every file still has the same content. */
export interface Recipe {
  /** Absolute path and SHA-256 of each file read; null for a file that was looked for and not there. */
  readonly files: Readonly<Record<string, string | null>>;
  /** Packages that the handler imports where they lie. */
  readonly packages: readonly string[];
}

const keptMs = 30 * 24 * 60 * 60 * 1_000;

/** Built handlers on disk: with one of them a start needs no build. */
export class HandlerCache {
  readonly #directory: string;
  readonly #key: string;

  /** `builder` names whatever else decides what a build looks like: versions and settings. */
  constructor(file: string, builder: string, directory = cacheDirectory()) {
    this.#directory = directory;
    this.#key = sha256(`${builder}\n${process.version}\n${file}`).slice(0, 24);
  }

  /** The path of the built handler, or undefined where there is none or something has changed since. */
  find(): string | undefined {
    try {
      const recipe = JSON.parse(fs.readFileSync(this.#recipePath, "utf8")) as Recipe & { built: string };
      const built = path.join(this.#directory, path.basename(recipe.built));
      const isSame = Object.entries(recipe.files).every(([file, hash]) => hashOf(file) === hash);
      return isSame && [built, ...recipe.packages].every((file) => fs.existsSync(file)) ? built : undefined;
    } catch {
      return undefined;
    }
  }

  /** Keeps a built handler, and returns its path. */
  keep(text: string, recipe: Recipe): string {
    this.#forgetOld();
    const built = path.join(this.#directory, `${this.#key}-${sha256(text).slice(0, 24)}.mjs`);
    writeWhole(built, text);
    writeWhole(this.#recipePath, JSON.stringify({ ...recipe, built: path.basename(built) }));
    return built;
  }

  get #recipePath(): string {
    return path.join(this.#directory, `${this.#key}.json`);
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

/** The SHA-256 of a file, or null where there is none. */
export function hashOf(file: string): string | null {
  try {
    return sha256(fs.readFileSync(file));
  } catch {
    return null;
  }
}

/**
 * A directory that only this user can write: what lies in it is run as code.
 * `MILLRACE_CACHE_DIR`, else one in the temporary directory; where that is somebody else's, one for this start alone.
 */
export function cacheDirectory(env: NodeJS.ProcessEnv = process.env): string {
  const userId = process.getuid?.() ?? 0;
  const directory = env.MILLRACE_CACHE_DIR || path.join(os.tmpdir(), `millrace-cache-${userId}`);
  fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
  const { mode, uid } = fs.lstatSync(directory);
  const isOurs = env.MILLRACE_CACHE_DIR || process.platform === "win32" || (uid === userId && (mode & 0o077) === 0);
  return isOurs ? directory : fs.mkdtempSync(path.join(os.tmpdir(), "millrace-cache-"));
}

function sha256(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Another worker may read the file at this moment: it sees the old one or the new one, never a half. */
function writeWhole(file: string, text: string): void {
  const half = `${file}.${process.pid}.half`;
  fs.writeFileSync(half, text, { mode: 0o600 });
  fs.renameSync(half, file);
}
