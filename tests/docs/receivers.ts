import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { type Ending, makeFolder } from "../e2e/handlers.js";
import { freePort, root, until } from "../harness.js";
import { blocksOf } from "./guide/blocks.js";

/** The languages of the receivers in `docs/guide/webhooks.md`, and the file that each is saved as. */
const languages = { Python: "receiver.py", "Node.js": "receiver.mjs", Go: "receiver.go" } as const;
export type Language = keyof typeof languages;
export const languageNames = Object.keys(languages) as Language[];

/** Programs in Go are made with its standard library alone. */
const go = { GOCACHE: join(root, ".cache/go/.cache/go-build"), GOTOOLCHAIN: "local", GO111MODULE: "off" };

/** A receiver as the page shows it, running. */
export interface RunningReceiver {
  readonly url: string;
  /** The lines it has printed: a job's id and its status. */
  readonly printed: () => string[];
}

/** Runs a receiver as the page does, with a free port. */
async function spawnReceiver(test: Ending, language: Language, secret: string | undefined) {
  const blocks = blocksOf("webhooks");
  const file = `~/${languages[language]}`;
  const at = blocks.findIndex(({ words }) => words.file === file);
  const [source, start] = [blocks[at], blocks[at + 1]];
  if (!source || !start?.text.endsWith(file)) throw new Error(`docs/guide/webhooks.md does not start ${file}`);
  const home = makeFolder(test);
  writeFileSync(join(home, languages[language]), source.text);
  const port = await freePort();
  const command = start.text.replace("PORT=9000", `PORT=${port}`);
  const path = [dirname(process.execPath), process.env.PATH, "/usr/local/go/bin"].join(":");
  const env = { PATH: path, HOME: home, ...(secret === undefined ? {} : { WEBHOOK_SECRET: secret }), ...go };
  const child = spawn("bash", ["-c", command], { env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  test.onTestFinished(() => ended(child));
  return { child, port };
}

export async function startReceiver(test: Ending, language: Language, secret: string): Promise<RunningReceiver> {
  const { child, port } = await spawnReceiver(test, language, secret);
  child.stderr.resume();
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (part) => (printed += part));
  await until(() => isListening(port), 110_000); // one in Go is compiled
  return { url: `http://127.0.0.1:${port}/hook`, printed: () => printed.split("\n").filter(Boolean) };
}

/** What a receiver writes that does not start, and its exit code: null if it has started. */
export async function endOfReceiver(test: Ending, language: Language, secret: string | undefined) {
  const { child, port } = await spawnReceiver(test, language, secret);
  const written = Promise.all([text(child.stdout), text(child.stderr)]);
  await until(async () => child.exitCode !== null || (await isListening(port)), 110_000);
  await ended(child);
  const [out, err] = await written;
  return { exit: child.exitCode, out, err };
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
  if (child.pid !== undefined) process.kill(-child.pid); // it may have children
  await exit;
}
