import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root, startServer, type TestServer } from "../harness.js";
import { millrace, program, toServer } from "./millrace.js";
import { delivered, type Receiver, startReceiver } from "./receiver.js";

/** The examples of the reference, in its order. */
const reference = readFileSync(join(root, "docs/reference/commands.md"), "utf8");
const examples = [...reference.matchAll(/^Examples?:\n((?: {2}.+\n)+)/gm)]
  .flatMap(([, lines = ""]) => lines.trimEnd().split("\n"))
  .map((line) => line.trim())
  .filter((line, n, all) => all.indexOf(line) === n);

let server: TestServer;
let folder: string;
/** A job in the state that a verb is for; that of other verbs has ended. */
let jobs: Record<"cancel" | "retry" | "other", string>;
let receiver: Receiver;
let delivery: string;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  folder = mkdtempSync(join(tmpdir(), "millrace-examples-"));
  for (const name of ["bin", "shout", "shout/tests", "home/.config/fish/completions"])
    mkdirSync(join(folder, name), { recursive: true });
  const files = {
    "bin/millrace": `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`,
    "shout/handler.js": `export default ({ text, fails, endless }) => {
      console.log(text);
      if (fails) throw new Error("no text");
      return endless ? new Promise(() => {}) : (text ?? "x").toUpperCase();
    };`,
    "shout/handler.py": "import runpod\nrunpod.serverless.start({'handler': lambda job: 1})\n",
    "shout/tests/hello.json": '{"input":{"text":"hello"},"output":"HELLO"}',
    "input.json": '{"text":"hello"}',
    "inputs.jsonl": '{"text":"a"}\n{"text":"b"}\n',
    "token.txt": "a-token\n",
    "key.txt": `${server.key}\n`,
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  chmodSync(join(folder, "bin/millrace"), 0o755);
  const run = (...words: string[]) => millrace(words, { env: toServer(server), folder });
  expect(await run("deploy", "shout")).toMatchObject({ exit: 0 });
  for (const level of ["a", "b", "c"]) await run("template", "update", "shout", `env.LEVEL=${level}`);
  const made = async (...words: string[]) => JSON.parse((await run("run", "shout", ...words, "--json")).out).id;
  jobs = {
    cancel: await made('{"endless":true}', "--no-wait"),
    retry: await made('{"fails":true}'),
    other: await made("{}"),
  };
  const [endpoint] = JSON.parse((await run("endpoint", "list", "--json")).out);
  receiver = await startReceiver();
  delivery = await delivered(server, endpoint.id, receiver);
}, 120_000);
afterAll(async () => {
  await server?.end();
  receiver?.end();
  rmSync(folder, { recursive: true, force: true });
});

/** Examples that go on until they are interrupted. */
const isEndless = (line: string) =>
  /^millrace (dev(?!.*--(input|test))|serve|top|logs .*-f)/.test(line.split("  ")[0] as string);
/** Needs an engine; the tests of containers build and deploy an image. */
const needsDocker = (line: string) => line.includes("--build");
/** Needs packages from elsewhere; the tests of Python environments make one. */
const needsPackages = (line: string) => /dev shout\/handler\.py/.test(line);

/** The example with what its reader would fill in. */
function filledIn(line: string): string {
  const verb = /^millrace (cancel|retry) /.exec(line)?.[1] as "cancel" | "retry" | undefined;
  return line
    .replace(/ {2,}.*$/, "") // what the example is for
    .replaceAll("7f3a…", jobs[verb ?? "other"])
    .replaceAll("msg_5d21…", delivery)
    .replaceAll("https://rack.example:8000", server.url)
    .replaceAll("https://app.example", receiver.origin);
}

async function inShell(line: string): Promise<{ exit: number | null; said: string }> {
  const data = { MILLRACE_DATA_DIR: server.dataDir };
  const env = {
    ...toServer(server),
    ...data,
    PATH: `${join(folder, "bin")}:${process.env.PATH}`,
    HOME: join(folder, "home"),
  };
  const cwd = line === "millrace dev" ? join(folder, "shout") : folder;
  const child = spawn("bash", ["-c", line], { cwd, env, detached: true });
  if (isEndless(line)) {
    let said = "";
    const spoke = new Promise<void>((done) => {
      child.stdout.on("data", (part) => {
        said += part;
        done();
      });
    });
    const exited = new Promise<number | null>((done) => child.once("close", done));
    await Promise.race([spoke, exited]);
    if (child.exitCode === null) process.kill(-(child.pid as number), "SIGINT");
    return { exit: await exited, said };
  }
  const exited = new Promise<number | null>((done) => child.once("close", done));
  const [out, err, exit] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  return { exit, said: out + err };
}

describe("The reference", () => {
  it("has examples", () => {
    expect(examples.length).toBeGreaterThan(80);
  });

  it.each(examples.filter((line) => !needsDocker(line) && !needsPackages(line)))(
    "%s",
    { timeout: 60_000 },
    async (line) => {
      const { exit, said } = await inShell(filledIn(line));
      const ended = isEndless(line) ? [0, 130, null] : [0];
      if (!ended.includes(exit)) throw new Error(`${filledIn(line)} ended with ${exit}: ${said}`);
    },
  );
});
