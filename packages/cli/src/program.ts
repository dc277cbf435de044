import { setTimeout as sleep } from "node:timers/promises";
import { Command, CommanderError } from "commander";
import { asCalled, called } from "./called.js";
import { openCalls } from "./calls.js";
import { auditCommand } from "./commands/audit.js";
import { backupCommands } from "./commands/backup.js";
import { benchCommand } from "./commands/bench.js";
import { completionHelp } from "./commands/completion.js";
import { contextCommands } from "./commands/contexts.js";
import { deployCommand } from "./commands/deploy.js";
import { devCommand } from "./commands/dev.js";
import { doctorCommand } from "./commands/doctor.js";
import { jobCommands } from "./commands/jobs.js";
import { lookingCommands } from "./commands/looking.js";
import { nounCommands } from "./commands/nouns.js";
import { queueCommands } from "./commands/queue.js";
import { serveCommand } from "./commands/serve.js";
import { topCommand } from "./commands/top.js";
import type { Env } from "./contexts.js";
import { examples } from "./examples.js";
import { type Exit, exits, Failure } from "./exit.js";
import { harmless, reflowed } from "./output/plain.js";
import { type Streams, Terminal } from "./output/terminal.js";
import { findServer } from "./server.js";
import type { Tools } from "./tools.js";

/** Surroundings of one run of the command line. */
export interface Run {
  readonly env: Env;
  readonly folder: string;
  readonly streams: Streams;
  readonly interrupted: AbortSignal;
  /** Keeps the first Ctrl-C from ending the process. */
  readonly endsItself: () => void;
  /** Leaves signals to whoever listens, and to the system until somebody does. */
  readonly leavesSignals: () => void;
  readonly version: string;
}

interface Options {
  readonly json?: true;
  readonly context?: string;
}

/** Runs a command line, without the program's name; resolves with its exit code. */
export async function runProgram(words: readonly string[], run: Run): Promise<Exit> {
  const { env, folder, streams } = run;
  let asked = "millrace";
  let exit: Exit = exits.done;
  const optionsOf = (command: Command) => command.optsWithGlobals<Options>();
  const tools: Tools = {
    env,
    streams,
    folder,
    interrupted: run.interrupted,
    endsItself: run.endsItself,
    leavesSignals: run.leavesSignals,
    terminal: (command) => new Terminal(streams, optionsOf(command).json === true, called(env, folder)),
    calls: (command) =>
      openCalls(
        findServer(env, folder, optionsOf(command).context, { isToStay: command.name() === "deploy" }),
        (fields) =>
          void streams.err.write(`! The server does not know these fields, and has ignored them: ${fields}\n`),
      ),
    end: (code) => {
      exit = code;
    },
  };
  try {
    const isHelp = words[0] === "completion" && words.some((word) => word === "--help" || word === "-h");
    const completes = (words[0] === "completion" && !isHelp) || words[0] === "complete";
    const program = makeProgram(tools, run, completes);
    if (completes) {
      const { addCompletion } = await import("./completion.js"); // other commands need not wait for it
      addCompletion(program, words[0] === "complete" ? await namesOf(tools, program) : []);
    }
    program.hook("preAction", (_, command) => {
      asked = pathOf(command);
    });
    await program.parseAsync([...words], { from: "user" });
    return exit;
  } catch (error) {
    return told(error, run, `${asked} --help`);
  }
}

/** Every command with its help, in the order in which they are listed. */
export function describeCommands(): { readonly name: string; readonly help: string }[] {
  const described: { name: string; help: string }[] = [];
  const unused = new Proxy({} as Tools, {});
  const describe = (command: Command, name: string) => {
    let help = "";
    command.configureOutput({ writeOut: (text) => void (help += text), getOutHelpWidth: () => 100 });
    command.outputHelp();
    described.push({ name, help });
    const below = command.createHelp().visibleCommands(command);
    for (const each of below) if (each.name() !== "help") describe(each, `${name} ${each.name()}`);
  };
  describe(
    makeProgram(unused, { streams: process.stdout as unknown as Streams, version: "" } as unknown as Run),
    "millrace",
  );
  return described;
}

/** The names that a shell completes; none if no server answers at once. */
async function namesOf({ calls }: Tools, program: Command): Promise<string[]> {
  try {
    const endpoints = calls(program).call<{ name: string }[]>("GET", "/v1/endpoints");
    const listed = await Promise.race([endpoints, sleep(completionMs, [], { ref: false })]);
    return listed.map(({ name }) => name.replace(/ -fb$/, ""));
  } catch {
    return [];
  }
}

/** How long a shell waits for names. */
const completionMs = 1_000;

function makeProgram(tools: Tools, { env, folder, streams, version }: Run, completes = false): Command {
  const program = new Command("millrace")
    .description("Runs jobs and looks after endpoints on a Millrace server, or is that server.")
    .version(version, "--version", "print the version")
    .option("--json", "print results as JSON, one line each")
    .option("--context <name>", "the server to speak to; see millrace context list")
    .exitOverride()
    .configureHelp({ minWidthToWrap: 16 })
    .configureOutput({
      writeOut: (text) =>
        void streams.out.write(streams.out.isTTY === true ? reflowed(text, streams.out.columns || 80) : text),
      writeErr: (text) => void streams.err.write(asCalled(text, called(env, folder))),
    })
    .addHelpText(
      "after",
      examples(
        "millrace dev ./shout",
        "millrace deploy ./shout",
        "millrace endpoint list",
        `millrace run shout '{"text":"hello"}'`,
        "millrace requests shout --status FAILED",
      ),
    )
    .addHelpText(
      "after",
      "\nExit codes: 0 done · 1 the job failed · 2 used wrongly · 3 the server refused · 4 no server answers · 130 interrupted",
    );
  for (const add of [
    devCommand,
    serveCommand,
    deployCommand,
    jobCommands,
    queueCommands,
    lookingCommands,
    nounCommands,
    auditCommand,
    contextCommands,
    topCommand,
    benchCommand,
    backupCommands,
    doctorCommand,
    ...(completes ? [] : [completionHelp]),
  ])
    add(program, tools);
  pointToHelp(program);
  return program;
}

/** A command with those above it, as people write it. */
const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;

/** Lets each command's complaints about how it was called end with its own help. */
function pointToHelp(command: Command): void {
  command.showHelpAfterError(`${pathOf(command)} --help`);
  for (const each of command.commands) pointToHelp(each);
}

/** Says why a command ended and what helps, if nothing better then `help`; returns its exit code. */
function told(error: unknown, { env, folder, streams: { err } }: Run, help: string): Exit {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exits.done : exits.usage; // it has said why
  if (!(error instanceof Failure)) throw error;
  const hint = error.hint ?? (error.exit === exits.interrupted ? undefined : help);
  const words = hint === undefined ? "" : `  ${asCalled(hint, called(env, folder))}`;
  err.write(`${harmless(error.message)}${words}\n`);
  return error.exit;
}
