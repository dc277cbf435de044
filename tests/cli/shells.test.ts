import { execFileSync, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { journal, makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { program, toServer } from "./millrace.js";

let server: TestServer;
let home: string;
const undos: (() => unknown)[] = [];
const ending = { onTestFinished: (undo: () => unknown) => void undos.unshift(undo) };
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  await makeEndpoint(server, makeHandler(ending, "export default () => 1;"), { name: "quick", workersMax: 0 });
  home = mkdtempSync(join(tmpdir(), "millrace-shells-"));
  for (const name of ["bin", ".config/fish/completions"]) mkdirSync(join(home, name), { recursive: true });
  // what completion does not ask for is only noted
  const noting = `#!/bin/sh
case "$1" in complet*) exec ${process.execPath} ${program} "$@" ;; esac
echo "$*" >> "$HOME/calls"
`;
  writeFileSync(join(home, "bin/millrace"), noting);
  chmodSync(join(home, "bin/millrace"), 0o755);
});
afterAll(async () => {
  await server?.end();
  for (const undo of undos) await undo();
  rmSync(home, { recursive: true, force: true });
});

const env = () => ({
  ...toServer(server),
  HOME: home,
  PATH: `${join(home, "bin")}:${process.env.PATH}`,
  TERM: "xterm-256color",
});

it("fish completes commands, options and endpoints' names from the file that the help names", () => {
  const fish = (line: string) => execFileSync("fish", ["-c", line], { env: env(), encoding: "utf8" });
  fish("millrace completion fish > ~/.config/fish/completions/millrace.fish");
  const completed = (words: string) => fish(`complete -C 'millrace ${words}'`);
  expect(completed("endpoint res")).toMatch(/^restart\tReplace all workers/);
  expect(completed("run --no")).toMatch(/^--no-wait\t/);
  expect(completed("run qu")).toMatch(/^quick\b/);
});

it("bash completes commands, options and endpoints' names, though nothing of its own for completions is installed", async (test) => {
  writeFileSync(join(home, "rc"), "source <(millrace completion bash)\nPS1='ready> '\n");
  const shell = spawn(
    "script",
    ["-qefc", `stty cols 200; exec bash --noprofile --rcfile ${join(home, "rc")} -i`, "/dev/null"],
    {
      env: env(),
      cwd: home,
    },
  );
  let screen = "";
  shell.stdout.setEncoding("utf8").on("data", (part) => (screen += part));
  test.onTestFinished(() => void shell.kill("SIGHUP"));
  await until(() => stripVTControlCharacters(screen).includes("ready> "));
  const before = existsSync(join(home, "calls")) ? journal(join(home, "calls")).length : 0;
  const calls: string[] = [];
  for (const [typed, completed] of [
    ["endpoint res", "endpoint restart"],
    ["run --no", "run --no-wait"],
    ["run qu", "run quick"],
  ] as const) {
    shell.stdin.write(`millrace ${typed}\t\r`);
    calls.push(completed);
    await until(() => existsSync(join(home, "calls")) && journal(join(home, "calls")).length === before + calls.length);
    expect(
      journal(join(home, "calls"))
        .slice(before)
        .map((line) => line.trim()),
    ).toEqual(calls);
  }
  rmSync(join(home, "calls"));
});

it("zsh completes commands, options and endpoints' names with the line that the help gives, after compinit", async (test) => {
  const lines = ["autoload -Uz compinit && compinit", "source <(millrace completion zsh)", "PS1='ready> '"];
  writeFileSync(join(home, ".zshrc"), `${lines.join("\n")}\n`);
  const shell = spawn("script", ["-qefc", "stty cols 200; exec zsh -i", "/dev/null"], { env: env(), cwd: home });
  let screen = "";
  shell.stdout.setEncoding("utf8").on("data", (part) => (screen += part));
  test.onTestFinished(() => void shell.kill("SIGHUP"));
  await until(() => stripVTControlCharacters(screen).includes("ready> "));
  const calls: string[] = [];
  for (const [typed, completed] of [
    ["endpoint res", "endpoint restart"],
    ["run --no", "run --no-wait"],
    ["run qu", "run quick"],
    ["run ", "run quick"],
  ] as const) {
    shell.stdin.write(`millrace ${typed}\t\r`);
    calls.push(completed);
    await until(() => journal(join(home, "calls")).length === calls.length);
    expect(journal(join(home, "calls")).map((line) => line.trim())).toEqual(calls);
  }
});
