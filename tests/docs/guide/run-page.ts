import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { venv } from "../../compat/stock.js";
import { root, startServer } from "../../harness.js";
import type { Block } from "./blocks.js";

const pageWithinMs = 280_000;

/** What a page's blocks printed, by the line that they begin at. */
export interface PageRun {
  readonly code: number | null;
  readonly output: ReadonlyMap<number, string>;
  /** The block that the script stopped at, and the server's log, for a failure's message. */
  readonly report: string;
}

/** What a page needs besides a shell. */
export interface PageSetting {
  /** Whether its blocks start the service. */
  readonly startsService: boolean;
  readonly env: Readonly<Record<string, string>>;
  /** What stands for something else in the page, by what it stands for. */
  readonly instead: Readonly<Record<string, string>>;
}

/**
 * Does what a page says, in order, in one shell: in a folder that looks like a clone in which `npm start` is running,
 * unless the page does that. The server's address replaces the usual one; HOME is empty, and packages of Python are
 * those of the tests.
 */
export async function runPage(blocks: readonly Block[], own?: PageSetting): Promise<PageRun> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-guide-"));
  const { clone, home } = freshClone(folder);
  const outputs = join(folder, "outputs");
  const dataDir = join(clone, ".millrace");
  for (const path of [dataDir, outputs]) mkdirSync(path);
  const PATH = [...(own ? [own.env.PATH] : []), join(venv(), "bin"), dirname(process.execPath), process.env.PATH].join(
    ":",
  );
  const server = own?.startsService ? undefined : await startServer({ MILLRACE_DATA_DIR: dataDir, PATH });
  try {
    if (server) writeFileSync(join(dataDir, "api-key"), `${server.key}\n`, { mode: 0o600 });
    const address = server ? { "http://127.0.0.1:8000": server.url } : {};
    const instead = Object.entries({ ...address, ...own?.instead });
    const script = instead.reduce((text, [from, to]) => text.replaceAll(from, to), scriptOf(blocks, outputs));
    const path = join(folder, "page.sh");
    writeFileSync(path, script);
    const code = await shell(path, clone, { ...own?.env, PATH, HOME: home });
    const output = new Map(
      readdirSync(outputs)
        .filter((name) => /^\d+$/.test(name))
        .map((name) => [Number(name), readFileSync(join(outputs, name), "utf8")]),
    );
    const at = readFileSync(join(outputs, "at"), "utf8").trim();
    const report = `stopped at line ${at}:\n${output.get(Number(at)) ?? ""}\n${server?.log().slice(-3_000) ?? ""}`;
    return { code, output, report };
  } finally {
    await server?.end();
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

/** Makes a folder that looks like a clone, without a server's data, and an empty home beside it. */
export function freshClone(folder: string): { clone: string; home: string } {
  const [clone, home] = [join(folder, "clone"), join(folder, "home")];
  for (const path of [clone, home]) mkdirSync(path);
  for (const name of readdirSync(root))
    if (![".millrace", ".git"].includes(name)) symlinkSync(join(root, name), join(clone, name));
  return { clone, home };
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
/** A word of a block's first line, in which underscores stand for blanks. */
const spoken = (word: string) => quoted(word.replaceAll("_", " "));

/** One shell script of all blocks, so that a variable of one is there in the next. */
function scriptOf(blocks: readonly Block[], outputs: string): string {
  const parts = blocks.map((block) => {
    const { words, text, line } = block;
    const at = `echo ${line} >${outputs}/at\n`;
    const output = `${outputs}/${line}`;
    if (words.file !== undefined) {
      const file = words.file.startsWith("~/") ? `"$HOME"/${words.file.slice(2)}` : words.file;
      return `${at}mkdir -p "$(dirname ${file})" && rm -f ${file} && printf '%s\\n' ${quoted(text)} >${file}`;
    }
    if (block.language !== "sh") return "";
    const stop = words.stops === undefined ? "" : "stop; wait; background=\n";
    const run = `{ ${text}\n} >${output} 2>&1`;
    if (words.shows !== undefined)
      return `${at}for _ in $(seq 100); do ${run}; grep -qF -- ${spoken(words.shows)} ${output} && break; sleep 0.2; done
grep -qF -- ${spoken(words.shows)} ${output}`;
    if (words.background === undefined) return `${at}${stop}${run}`;
    const wait = words.until === undefined ? "" : `await_text ${spoken(words.until)} ${output}`;
    return `${at}${run} &\nbackground="$background $!"\n${wait}`;
  });
  return `${prelude}\n${parts.join("\n")}\n`;
}

const prelude = `set -euo pipefail
set -m # each background command has a process group of its own
background=
stop() { for one in $background; do kill -INT -- -$one 2>/dev/null || true; done; }
trap stop EXIT
await_text() {
  for _ in $(seq 600); do grep -qF -- "$1" "$2" && return; sleep 0.1; done
  echo "never printed: $1" >>"$2"; return 1
}
`;

function shell(path: string, cwd: string, own: Readonly<Record<string, string>>): Promise<number | null> {
  const env = { ...own, NO_COLOR: "1", npm_config_update_notifier: "false" };
  const child = spawn("bash", [path], { cwd, env, stdio: "ignore", detached: true });
  const timer = setTimeout(() => child.pid && process.kill(-child.pid, "SIGKILL"), pageWithinMs);
  return new Promise((done) =>
    child.once("exit", (code) => {
      clearTimeout(timer);
      done(code);
    }),
  );
}
