import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parse } from "smol-toml";
import { exits, Failure } from "../exit.js";
import { runProgram } from "../run-program.js";
import type { HandlerFile } from "./handler.js";

/** A Python to run a handler with, and where it comes from. */
export interface PythonFound {
  readonly python: string;
  /** For people: its version, and what was done for it. */
  readonly words: string;
  /** What to do about a package that is missing; `{package}` stands for its name. */
  readonly packageAdvice: string;
}

const needFiles = ["requirements.txt", "pyproject.toml"] as const;

/** Whether a change of this file may change the environment: requirements.txt may name other files. */
export const isNeedsFile = (file: string): boolean => /\.(txt|toml)$/.test(file);

/**
 * A Python that has what a handler needs. A `.venv` that its user made is taken as it is. Otherwise one is made from
 * requirements.txt or pyproject.toml, by uv if that is installed, and made again when these change.
 * `say`: told what takes a while.
 */
export async function findPython(handler: HandlerFile, env: Env, say: (text: string) => void): Promise<PythonFound> {
  const { folder } = handler;
  const [venv, stamp] = [join(folder, ".venv"), join(folder, ".venv", "millrace-stamp")];
  const own = join(venv, "bin", "python");
  if (existsSync(venv) && !existsSync(stamp))
    return { python: own, words: `${await versionOf(own, env)}, .venv`, packageAdvice: await adviceForOwn(own, env) };
  const needs = needsOf(handler);
  const { packageAdvice } = needs;
  const system = await versionOf("python3", env);
  if (
    needs.source === undefined &&
    (await runProgram("python3", ["-c", "import runpod"], { env, cwd: folder })).code === 0
  )
    return { python: "python3", words: system, packageAdvice };
  const wanted = createHash("sha256")
    .update(`${needs.args.join(" ")} ${needs.text}`)
    .digest("hex");
  const words = `${system}, ${needs.source ?? "runpod"}`;
  const [madeWith, had] = existsSync(own) ? readFileSync(stamp, "utf8").split("\n") : [];
  if (madeWith === system && had === wanted)
    return { python: own, words: `${words}, environment reused`, packageAdvice };
  const isThere = madeWith === system && had !== unfinished;
  const hasUv = await findsUv(env);
  say(
    `${isThere ? "updating" : "making"} .venv from ${needs.source ?? "the package runpod"} …${hasUv || isThere ? "" : " (about a minute)"}`,
  );
  if (!isThere) {
    rmSync(venv, { recursive: true, force: true });
    // who is interrupted from now on begins anew: without this it would look like a user's own
    mkdirSync(venv);
    writeFileSync(stamp, `${system}\n${unfinished}`);
    const uv = ["uv", "venv", "--quiet", "--allow-existing", ".venv"];
    await step(hasUv ? uv : ["python3", "-m", "venv", ".venv"], folder, env);
  }
  const pip = hasUv
    ? ["uv", "pip", "install", "--quiet", "--python", ".venv/bin/python"]
    : [".venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
  if (needs.args.length > 0) await step([...pip, ...needs.args], folder, env);
  writeFileSync(stamp, `${system}\n${wanted}`);
  return { python: own, words: `${words}, environment ${isThere ? "updated" : "made"}`, packageAdvice };
}

const unfinished = "unfinished";

type Env = Readonly<Record<string, string | undefined>>;

interface NeededPackages {
  readonly source: string | undefined;
  /** The contents of `source`. */
  readonly text: string;
  /** For pip. */
  readonly args: readonly string[];
  /** What installs one more. */
  readonly packageAdvice: string;
}

/** What to install: what its file lists, and the package that serves the handler if that is not among it. */
function needsOf({ folder, file }: HandlerFile): NeededPackages {
  const source = needFiles.find((name) => existsSync(join(folder, name)));
  const text = source === undefined ? "" : wholeText(folder, source);
  const listed = source === "pyproject.toml" ? dependenciesOf(text) : source === undefined ? [] : ["-r", source];
  const isServed = /^\s*(import|from)\s+runpod\b/m.test(readFileSync(join(folder, file), "utf8"));
  const isListed = /^\s*["']?runpod\b/m.test(source === "pyproject.toml" ? listed.join("\n") : text);
  const packageAdvice =
    source === "pyproject.toml"
      ? 'add "{package}" to the dependencies in pyproject.toml'
      : `echo {package} >> ${join(folder, "requirements.txt")}`;
  return { source, text, args: [...listed, ...(isServed && !isListed ? ["runpod"] : [])], packageAdvice };
}

/** A file of packages with the others that its lines name, each once. */
function wholeText(folder: string, file: string, read = new Set<string>()): string {
  read.add(file);
  if (!existsSync(join(folder, file))) return ""; // pip says so
  const text = readFileSync(join(folder, file), "utf8");
  const named = [...text.matchAll(/^\s*(?:-r|-c|--requirement|--constraint)[ =]+(\S+)/gm)];
  const more = named.map(([, path = ""]) => join(dirname(file), path)).filter((path) => !read.has(path));
  return [text, ...more.map((path) => wholeText(folder, path, read))].join("\n");
}

const findsUv = async (env: Env): Promise<boolean> =>
  (await runProgram("uv", ["--version"], { env, cwd: "." })).code === 0;

/** For an environment that its user made: it is not watched. */
async function adviceForOwn(python: string, env: Env): Promise<string> {
  const hasPip = (await runProgram(python, ["-m", "pip", "--version"], { env, cwd: "." })).code === 0;
  const withPip = `${python} -m pip install {package}`;
  const withoutPip = (await findsUv(env))
    ? `uv pip install --python ${python} {package}`
    : `${python} -m ensurepip && ${withPip}`;
  const pip = hasPip ? withPip : withoutPip;
  return `${pip}, then save the handler again`;
}

function dependenciesOf(text: string): string[] {
  try {
    const { project, tool } = parse(text) as { project?: { dependencies?: unknown }; tool?: { poetry?: object } };
    if (Array.isArray(project?.dependencies)) return project.dependencies.map(String);
    if (tool?.poetry === undefined || !("dependencies" in tool.poetry)) return [];
    const words = "pyproject.toml lists its packages for Poetry alone.";
    throw new Failure(exits.usage, words, "poetry export --output requirements.txt, or list them under [project]");
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure(exits.usage, `pyproject.toml is not valid TOML: ${(error as Error).message.split("\n")[0]}`);
  }
}

/** A step of making an environment. */
async function step([command = "", ...args]: readonly string[], folder: string, env: Env): Promise<void> {
  const { code, output } = await runProgram(command, args, { env, cwd: folder });
  if (code === 0) return;
  const last = output.trim().split("\n").slice(-5).join("\n  ");
  throw new Failure(
    exits.failed,
    `The Python environment could not be made:\n  ${last}\n `,
    `cd ${folder} && ${[command, ...args].join(" ")}`,
  );
}

/** `Python 3.12.4`, shortened. */
async function versionOf(python: string, env: Env): Promise<string> {
  const { code, output } = await runProgram(python, ["--version"], { env, cwd: "." });
  if (code === 0) return output.trim().split(".").slice(0, 2).join(".");
  if (python !== "python3")
    throw new Failure(exits.failed, `${python} does not run: ${output.trim()}`, `rm -r ${join(python, "../..")}`);
  throw new Failure(exits.failed, "Python 3 is not installed.", "apt install python3 python3-venv");
}
