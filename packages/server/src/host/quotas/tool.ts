import { execFile } from "node:child_process";
import { limits } from "../../limits/index.js";

export interface Ran {
  /** Undefined if there is no such program, or it did not end in time. */
  readonly code: number | undefined;
  /** What it printed. */
  readonly out: string;
  readonly err: string;
  /** Why it failed, in the program's own words if it printed any. */
  readonly why: string;
}

/** Runs a file system tool in `cwd`, so that its parser sees only plain names instead of paths. */
export function run(program: string, words: readonly string[], cwd: string): Promise<Ran> {
  const PATH = `${process.env.PATH ?? ""}:/usr/sbin:/sbin`; // a service's PATH usually lacks the tools' folders
  const options = { cwd, env: { PATH, LC_ALL: "C" }, timeout: limits.quotaToolMs, maxBuffer: limits.quotaWordsMax };
  return new Promise((resolve) => {
    execFile(program, words, options, (error, out, err) => {
      const first = (err || out).trim().split("\n")[0]?.slice(0, 300) ?? "";
      if (!error) resolve({ code: 0, out, err, why: first });
      else if (error.code === "ENOENT")
        resolve({ code: undefined, out, err, why: `there is no ${program} on the PATH` });
      else if (error.killed) resolve({ code: undefined, out, err, why: `${program} did not end in time` });
      else resolve({ code: Number(error.code), out, err, why: first || error.message });
    });
  });
}
