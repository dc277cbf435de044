import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import { runProgram } from "../../packages/cli/src/program.js";
import { root, type TestServer, until } from "../harness.js";

export const program = join(root, "packages/cli/dist/main.js");

/** How a command ended, and what it wrote. */
export interface Ended {
  readonly exit: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Around {
  readonly env?: Readonly<Record<string, string>>;
  readonly folder?: string;
  readonly input?: string;
}

/** The home of a user of this process's tests, who has saved no context. */
const home = join(process.env.MILLRACE_TEST_HOMES ?? tmpdir(), `${process.pid}`);
const bare = { PATH: process.env.PATH, HOME: home };

/** Runs the command line as a program of its own, with pipes; its environment is `env`, and a home of its own. */
export async function millrace(
  words: readonly string[],
  { env = {}, folder = root, input = "" }: Around,
): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...words], { cwd: folder, env: { ...bare, ...env } });
  child.stdin.on("error", () => {}); // it may end without reading
  child.stdin.end(input);
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [out, err, exit] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  return { exit, out, err };
}

/** Runs the command line in this process, which is faster; not for commands that go on. */
export async function millraceHere(
  words: readonly string[],
  { env = {}, folder = root, input = "" }: Around,
): Promise<Ended> {
  const [out, err] = [new PassThrough(), new PassThrough()];
  const written = Promise.all([text(out), text(err)]);
  const exit = await runProgram(words, {
    env: { ...bare, ...env },
    folder,
    streams: { in: Readable.from([input]), out, err },
    interrupted: new AbortController().signal,
    endsItself: () => {},
    leavesSignals: () => {},
    version: "",
  });
  out.end();
  err.end();
  const [said, complained] = await written;
  return { exit, out: said, err: complained };
}

/** The environment that names a server. */
export const toServer = ({ url, key }: Pick<TestServer, "url" | "key">) => ({
  MILLRACE_URL: url,
  MILLRACE_API_KEY: key,
});

/** Runs commands in this process, by default with the server's first key; `json` expects that they work. */
export function callsHere(at: () => { readonly server: Pick<TestServer, "url" | "key">; readonly folder: string }) {
  const run = (words: readonly string[], key = at().server.key): Promise<Ended> =>
    millraceHere(words, { env: { ...toServer(at().server), MILLRACE_API_KEY: key }, folder: at().folder });
  const json = async (words: readonly string[], key?: string) => {
    const ended = await run([...words, "--json"], key);
    expect(ended).toMatchObject({ exit: 0, err: "" });
    return JSON.parse(ended.out);
  };
  return { run, json };
}

/** A command that goes on, until it is ended. */
export interface Going {
  /** Everything written so far, standard output and errors as they came. */
  readonly screen: () => string;
  readonly shows: (text: string | RegExp) => Promise<void>;
  /** Types keys where there is a terminal. */
  readonly type: (keys: string) => void;
  /** Ctrl-C, or SIGINT where there is no terminal. */
  readonly interrupt: () => void;
  /** Closes its terminal, if it is on one. */
  readonly hangUp: () => void;
  readonly ended: Promise<number | null>;
}

/** Starts a command with pipes; it is ended with the test at the latest. */
export function startMillrace(test: Ending, words: readonly string[], { env = {}, folder = root }: Around): Going {
  const child = spawn(process.execPath, [program, ...words], { cwd: folder, env: { ...bare, ...env } });
  return going(test, child, () => void child.kill("SIGINT"));
}

/** Starts a command of `millrace` on a pseudo-terminal of so many columns. */
export function startOnTerminal(test: Ending, words: readonly string[], around: OnTerminal): Going {
  const line = [process.execPath, program, ...words].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  return typeOnTerminal(test, `exec ${line}`, around);
}

/** Starts a line of a shell on a pseudo-terminal; it is ended with the test at the latest. */
export function typeOnTerminal(
  test: Ending,
  line: string,
  { env = {}, folder = root, columns = 80 }: OnTerminal,
): Going {
  const child = spawn("script", ["-qefc", `stty rows 40 cols ${columns}; ${line}`, "/dev/null"], {
    cwd: folder,
    env: { PATH: process.env.PATH, TERM: "xterm-256color", ...env },
  });
  return going(test, child, () => void child.stdin.write("\u0003"));
}

interface OnTerminal extends Around {
  readonly columns?: number;
}

interface Ending {
  onTestFinished(undo: () => unknown): void;
}

function going(test: Ending, child: ChildProcessWithoutNullStreams, interrupt: () => void): Going {
  let screen = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (part) => (screen += part));
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  let hasEnded = false;
  void ended.then(() => (hasEnded = true));
  test.onTestFinished(async () => {
    if (!hasEnded) interrupt();
    await ended;
  });
  const isThere = (text: string | RegExp) => (typeof text === "string" ? screen.includes(text) : text.test(screen));
  return {
    screen: () => screen,
    shows: (text) =>
      until(() => isThere(text) || (hasEnded && Promise.reject(new Error("it has ended"))), 60_000)
        .then(() => {})
        .catch((error) => {
          throw new Error(`It does not show ${text} (${error.message}), but:\n${screen}`);
        }),
    type: (keys) => void child.stdin.write(keys),
    interrupt,
    hangUp: () => void child.kill("SIGKILL"),
    ended,
  };
}

/** Runs a command on a pseudo-terminal; Ctrl-C is typed once `after` has appeared, if that is given. */
export async function onTerminal(
  words: readonly string[],
  { after, ...around }: Around & { readonly columns?: number; readonly after?: string },
): Promise<{ readonly exit: number | null; readonly screen: string }> {
  const { shows, interrupt, ended, screen } = startOnTerminal({ onTestFinished: () => {} }, words, around);
  if (after !== undefined) await shows(after).then(interrupt);
  return { exit: await ended, screen: screen() };
}
