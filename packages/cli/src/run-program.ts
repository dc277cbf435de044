import { spawn } from "node:child_process";

/** Runs a program to its end, or for `timeoutMs`; its code is null if it cannot be started. */
export function runProgram(
  command: string,
  args: readonly string[],
  { env, cwd, timeoutMs }: { env: Readonly<Record<string, string | undefined>>; cwd: string; timeoutMs?: number },
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(command, args, {
    cwd,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  // not spawn's own `timeout`: its timer runs on, and holds this process, where the program cannot be started
  const late = timeoutMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), timeoutMs);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  const ended = new Promise<{ readonly code: number | null; readonly output: string }>((done) => {
    child.once("error", ({ message }) => done({ code: null, output: message }));
    child.once("exit", (_, signal) => {
      if (signal !== null) done({ code: 1, output: output.trim() || `ended by ${signal}` });
    });
    child.once("close", (code) => done({ code: code ?? 1, output: output.trim() }));
  });
  return ended.finally(() => clearTimeout(late));
}
