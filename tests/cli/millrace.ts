import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { root, type TestServer } from "../harness.js";

const program = join(root, "packages/cli/dist/main.js");

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

/** Runs the command line as a program of its own, with pipes; its environment is `env` alone. */
export async function millrace(
  words: readonly string[],
  { env = {}, folder = root, input = "" }: Around,
): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...words], { cwd: folder, env: { PATH: process.env.PATH, ...env } });
  child.stdin.on("error", () => {}); // it may end without reading
  child.stdin.end(input);
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [out, err, exit] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  return { exit, out, err };
}

/** The environment that names a server. */
export const toServer = ({ url, key }: Pick<TestServer, "url" | "key">) => ({
  MILLRACE_URL: url,
  MILLRACE_API_KEY: key,
});

/** Runs a command on a pseudo-terminal of so many columns; `keys` are typed once `after` has appeared. */
export async function onTerminal(
  words: readonly string[],
  {
    env = {},
    columns = 80,
    keys,
    after = "",
  }: Around & { readonly columns?: number; readonly keys?: string; readonly after?: string },
): Promise<{ readonly exit: number | null; readonly screen: string }> {
  const line = [process.execPath, program, ...words].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  const child = spawn("script", ["-qefc", `stty cols ${columns}; exec ${line}`, "/dev/null"], {
    cwd: root,
    env: { PATH: process.env.PATH, TERM: "xterm-256color", ...env },
  });
  let screen = "";
  let isTyped = keys === undefined;
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    screen += part;
    if (isTyped || !screen.includes(after)) return;
    isTyped = true;
    child.stdin.write(keys);
  });
  const exit = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { exit, screen };
}
