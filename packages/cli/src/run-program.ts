import { spawn } from "node:child_process";

/** Runs a program to its end; its code is null if it cannot be started. */
export function runProgram(
  command: string,
  args: readonly string[],
  { env, cwd }: { env: Readonly<Record<string, string | undefined>>; cwd: string },
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  return new Promise((done) => {
    child.once("error", ({ message }) => done({ code: null, output: message }));
    child.once("close", (code) => done({ code, output: output.trim() }));
  });
}
