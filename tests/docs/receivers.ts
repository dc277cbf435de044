import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { type Ending, makeFolder } from "../e2e/handlers.js";
import { freePort, root, until } from "../harness.js";

/** The languages of the receivers in `docs/guide/webhooks.md`: how its code block is marked, and how it is started. */
const languages = {
  Python: { mark: "python", file: "receiver.py", command: (file: string) => ["python3", file] },
  "Node.js": { mark: "js", file: "receiver.mjs", command: (file: string) => [process.execPath, file] },
  Go: { mark: "go", file: "receiver.go", command: built },
} as const;
export type Language = keyof typeof languages;
export const languageNames = Object.keys(languages) as Language[];

/** Compiles a Go program of a single file, with the standard library alone. */
function built(file: string): string[] {
  const program = file.replace(/\.go$/, "");
  const cache = join(root, ".cache/go");
  execFileSync("go", ["build", "-o", program, file], {
    env: { PATH: `${process.env.PATH}:/usr/local/go/bin`, HOME: cache, GOTOOLCHAIN: "local", GO111MODULE: "off" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  return [program];
}

/** A receiver as the page shows it, running. */
export interface RunningReceiver {
  readonly url: string;
  /** The lines it has printed: a job's id and its status. */
  readonly printed: () => string[];
}

export async function startReceiver(test: Ending, language: Language, secret: string): Promise<RunningReceiver> {
  const { mark, file, command } = languages[language];
  const page = readFileSync(join(root, "docs/guide/webhooks.md"), "utf8");
  const [, source] = new RegExp(`^\`\`\`${mark}\\b.*?\\n(.*?)^\`\`\``, "ms").exec(page) ?? [];
  if (source === undefined) throw new Error(`docs/guide/webhooks.md has no block of ${mark}`);
  const path = join(makeFolder(test), file);
  writeFileSync(path, source);
  const port = await freePort();
  const [program, ...args] = command(path) as [string, ...string[]];
  const env = { PATH: process.env.PATH ?? "", WEBHOOK_SECRET: secret, PORT: String(port) };
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "ignore"] });
  test.onTestFinished(() => ended(child));
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (part) => (text += part));
  await until(() => isListening(port), 30_000);
  return { url: `http://127.0.0.1:${port}/hook`, printed: () => text.split("\n").filter(Boolean) };
}

const isListening = (port: number): Promise<boolean> =>
  new Promise((done) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => done(true)).once("error", () => done(false));
    socket.once("connect", () => socket.destroy());
  });

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((done) => child.once("exit", done));
  child.kill();
  await exit;
}
