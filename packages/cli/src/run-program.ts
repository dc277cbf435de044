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
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs, killSignal: "SIGKILL" }),
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  return new Promise((done) => {
    child.once("error", ({ message }) => done({ code: null, output: message }));
    child.once("exit", (_, signal) => {
      if (signal !== null) done({ code: 1, output: output.trim() || `ended by ${signal}` });
    });
    child.once("close", (code) => done({ code: code ?? 1, output: output.trim() }));
  });
}
