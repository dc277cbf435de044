import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";
import { typeOnTerminal } from "../../cli/millrace.js";
import { venv } from "../../compat/stock.js";
import { freePort } from "../../harness.js";
import { type Block, blocksIn } from "./blocks.js";
import { freshClone } from "./run-page.js";

/** The commands of README.md from the start to a changed handler, with one of the two ways to write it. */
function commandsOf(way: string): Block[] {
  const shell = blocksIn("README.md").filter(({ language }) => language === "sh");
  const last = shell.findLastIndex(({ text }) => text.includes("millrace deploy"));
  return shell.slice(0, last + 1).filter(({ words }) => words.way === undefined || words.way === way);
}

// README.md
it.each([
  { way: "python", file: "handler.py", loud: ".upper()", quiet: ".lower()" },
  { way: "typescript", file: "handler.ts", loud: ".toUpperCase()", quiet: ".toLowerCase()" },
])("README.md leads from a clone to a handler of one's own, and to a changed one ($way)", async (test) => {
  const { way, file, loud, quiet } = test;
  const folder = mkdtempSync(join(tmpdir(), "millrace-readme-"));
  const { clone, home } = freshClone(folder);
  const endings: (() => unknown)[] = [
    () => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }),
  ];
  const env = {
    PATH: [join(venv(), "bin"), dirname(process.execPath), process.env.PATH].join(":"),
    HOME: home,
    NO_COLOR: "1",
    npm_config_update_notifier: "false",
  };
  /** Runs a command that goes on, in a terminal of its own. */
  const open = async ({ text, words }: Block, more: Record<string, string> = {}) => {
    const ending = { onTestFinished: (end: () => unknown) => void endings.unshift(end) };
    const going = typeOnTerminal(ending, text, { env: { ...env, ...more }, folder: clone, columns: 200 });
    await going.shows((words.until ?? "").replaceAll("_", " "));
    return { ...going, lines: () => stripVTControlCharacters(going.screen()).split(/\r*\n/) };
  };
  const run = (command: string) => ranIn(clone, env, command);
  const edit = (from: string, to: string) => {
    const path = join(home, "shout", file);
    const before = readFileSync(path, "utf8");
    expect(before).toContain(from);
    writeFileSync(path, before.replace(from, to));
  };
  const shouted = (answer: string) => expect.stringMatching(new RegExp(`"shouted": ?"${answer}"`));
  try {
    const commands = commandsOf(way);
    expect(commands.map(({ text }) => text.split("\n")[0]?.slice(0, 30))).toEqual([
      "npm start",
      "mkdir -p ~/shout",
      "npx millrace dev ~/shout",
      "npx millrace deploy ~/shout",
      "npx millrace deploy ~/shout",
    ]);
    const [start, write, dev, deploy, replace] = commands as [Block, Block, Block, Block, Block];

    const server = await open(start, { MILLRACE_PORT: String(await freePort()) });
    const tried = server.lines().find((line) => line.includes("Try it:")) ?? "";
    expect(await run(tried.replace("Try it:", ""))).toContain('"output":{"greeting":"Hello, you!"}');
    await run(write.text);

    const serving = await open(dev);
    const calls = serving.lines().filter((line) => /^ {4}(\(cd|curl) /.test(line));
    expect(calls).toHaveLength(2);
    for (const call of calls) expect(await run(call)).toEqual(shouted("HELLO"));
    edit(loud, quiet);
    await serving.shows(`! ${file} changed: the worker is replaced`);
    for (const call of calls) expect(await run(call)).toEqual(shouted("hello"));
    serving.interrupt();
    await serving.ended;

    const deployed = await run(deploy.text);
    expect(deployed).toEqual(shouted("hello"));
    const [curl = ""] = /^ +curl .*$/m.exec(deployed) ?? [];
    expect(await run(curl)).toEqual(shouted("hello"));
    edit(quiet, loud);
    expect(await run(replace.text)).toEqual(shouted("HELLO"));
  } finally {
    for (const end of endings) await end();
  }
});

/** What a line of a shell prints; it must succeed. */
async function ranIn(cwd: string, env: Record<string, string>, command: string): Promise<string> {
  const child = spawn("bash", ["-euo", "pipefail", "-c", command], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<number | null>((done) => child.once("close", done));
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  expect({ code, out, err }, command).toMatchObject({ code: 0 });
  return out;
}
