import { resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { count } from "../count.js";
import { findHandler } from "../dev/handler.js";
import { examples } from "../examples.js";
import { exits, Failure } from "../exit.js";
import { readInput } from "../input.js";
import { jsonNote } from "../json-note.js";
import type { Tools } from "../tools.js";

/** The command that serves a handler while it is being written. */
export function devCommand(program: Command, tools: Tools): void {
  program
    .command("dev")
    .description("Serve a handler while you write it: a saved file replaces its worker at once.")
    .addHelpText(
      "after",
      jsonNote(
        "the engine's events as JSON lines; with --input the job's status, as GET /v2/{endpoint}/status/{job} returns it; with --test each check",
        "{ check: string, passed: boolean, status: string, output?: any, error?: string }",
      ),
    )
    .argument("[handler]", "its folder, or its file", ".")
    .option("--input <json>", "run one job and end: a JSON object, a file, or - for standard input")
    .option("--test <folder>", "run each check in a folder and end")
    .option("--env <name=value>", "an environment variable for the handler; may be repeated", variable, {})
    .option("--workers <count>", "how many workers may run at a time", count, 1)
    .option("--verbose", "show details, and ids in full")
    .option("--port <port>", "the engine's port (default: the first free one from 8000 on)", count)
    .addHelpText(
      "after",
      `
The engine is the one that npm start runs; its data is in the handler's folder, in .millrace. For a Python handler, .venv
is made from requirements.txt or pyproject.toml, and made again when these change.

A check is a file such as tests/hello.json: {"input": {"text": "hello"}, "output": "HELLO"}, or with "error" instead of
"output", a text that the job's error must contain.
${examples(
  "millrace dev                                  the handler in this folder",
  "millrace dev shout/handler.py",
  `millrace dev shout --input '{"text":"hello"}'`,
  "millrace dev shout --test shout/tests",
)}`,
    )
    .action(async (given: string, options: Options, command: Command) => {
      const terminal = tools.terminal(command);
      if (options.input !== undefined && options.test !== undefined)
        throw new Failure(exits.usage, "--input runs one job, and --test a folder of checks: give one of them.");
      const handler = findHandler(given, tools.folder);
      const input = options.input === undefined ? undefined : await readInput(asFile(options.input), tools.streams.in);
      const test = options.test === undefined ? undefined : resolve(tools.folder, options.test);
      const { dev } = await import("../dev/dev.js"); // other commands need not wait for it
      tools.end(
        await dev(tools, terminal, handler, {
          ...options,
          port: options.port,
          isVerbose: options.verbose === true,
          input,
          test,
        }),
      );
    });
}

interface Options {
  readonly input?: string;
  readonly test?: string;
  readonly env: Readonly<Record<string, string>>;
  readonly workers: number;
  readonly port?: number;
  readonly verbose?: true;
}

/** A path stands for its file's content, with or without the @; so does what cannot be a job's input. */
const asFile = (given: string): string => (/^\s*[{[]|^-$|^@/.test(given) ? given : `@${given}`);

function variable(given: string, before: Readonly<Record<string, string>>): Record<string, string> {
  const [, name, value] = /^([A-Za-z_]\w*)=(.*)$/s.exec(given) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError("Write NAME=value.");
  return { ...before, [name]: value };
}
