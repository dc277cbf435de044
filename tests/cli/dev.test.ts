import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { beforeEach, describe, expect, it, type TestContext } from "vitest";
import { millrace, millraceHere, program, startMillrace, startOnTerminal } from "./millrace.js";

let folder: string;
beforeEach((test) => {
  folder = join(mkdtempSync(join(tmpdir(), "millrace-dev-")), "shout");
  mkdirSync(folder);
  test.onTestFinished(() => rmSync(join(folder, ".."), { recursive: true, force: true }));
});

const write = (file: string, text: string) => {
  mkdirSync(join(folder, file, ".."), { recursive: true });
  writeFileSync(join(folder, file), text);
};
const handler = (change: string) => `
console.log("loading the model");
export default async ({ text }) => {
  console.log("shouting " + text);
  return text.${change};
};`;
const polled = { timeout: 30_000 };
const run = (...words: string[]) => millraceHere(words, { folder });
/** A `dev` that ends by itself, with an engine of its own. */
const dev = (...words: string[]) => millrace(["dev", ...words], { folder });

/** A `dev` of the folder that is ready for requests. */
async function start(test: TestContext, ...words: string[]) {
  const going = startMillrace(test, ["dev", ".", ...words], { folder });
  await going.shows("Ctrl-C ends it");
  return going;
}

describe("millrace dev", () => {
  it("serves the handler of a folder, shows what happens, and replaces its worker when a file is saved", async (test) => {
    write("handler.js", handler("toUpperCase()"));
    const going = await start(test);
    expect(await run("run", "shout", '{"text":"hello"}')).toMatchObject({ exit: 0, out: "HELLO\n" });
    await going.shows(/│ shouting hello\n.* ✓ job \w{6} {2}waited .* ran /);
    expect(going.screen()).toMatch(/│ loading the model\n/);
    write("handler.js", handler("toLowerCase()"));
    await going.shows("! handler.js changed: the worker is replaced\n");
    expect((await run("run", "shout", '{"text":"Hello"}')).out).toBe("hello\n");
    write("notes/words.txt", "loud");
    await going.shows("! notes/words.txt changed: the worker is replaced\n");
    going.interrupt();
    expect(await going.ended).toBe(0);
    expect((await run("health", "shout")).exit).toBe(2);
  });

  it("replaces a worker whose job hangs at once when its code is saved, and runs the job again", async (test) => {
    write("handler.js", "export default () => { for (;;); };");
    const going = await start(test);
    const job = (await run("run", "shout", '{"text":"hung"}', "--no-wait")).out.trim();
    await expect.poll(async () => (await run("status", "shout", job)).out, polled).toContain("IN_PROGRESS");
    write("handler.js", handler("toUpperCase()"));
    await going.shows("! handler.js changed: the worker is replaced, and its job begins again\n");
    expect(await run("status", "shout", job, "--wait")).toMatchObject({ exit: 0, out: "HUNG\n" });
  });

  it("lets a job that writes into the handler's folder end before its worker is replaced, and says so once", async (test) => {
    write(
      "handler.js",
      `import { writeFileSync } from "node:fs";
      export default async ({ text }) => {
        writeFileSync("said.txt", text);
        await new Promise((done) => setTimeout(done, 1_000));
        return text;
      };`,
    );
    const going = await start(test);
    expect(await run("run", "shout", '{"text":"one"}')).toMatchObject({ exit: 0, out: "one\n" });
    await going.shows("! said.txt changed: the worker is replaced after its job (files that the handler writes are");
    expect(await run("run", "shout", '{"text":"two"}')).toMatchObject({ exit: 0, out: "two\n" });
    await going.shows("! said.txt changed: the worker is replaced after its job\n");
  });

  it("shows ids in full and details with --verbose", async (test) => {
    write("handler.js", handler("toUpperCase()"));
    const going = await start(test, "--verbose");
    const job = JSON.parse((await run("run", "shout", '{"text":"hello"}', "--json")).out).id;
    await going.shows(new RegExp(`✓ job ${job} {2}waited`));
  });

  it("keeps jobs while the handler is broken, says what is wrong once, and runs them when it is mended", async (test) => {
    write("handler.js", 'throw new Error("no weights here");');
    const going = await start(test);
    const job = (await run("run", "shout", '{"text":"kept"}', "--no-wait")).out.trim();
    await going.shows(/did not start, 2 times in a row: .*no weights here/);
    expect(going.screen().match(/│ .*no weights here/g)).toHaveLength(1);
    write("handler.js", handler("toUpperCase()"));
    await going.shows("! handler.js changed: the worker is replaced; 1 queued job is kept\n");
    expect(await run("status", "shout", job, "--wait")).toMatchObject({ exit: 0, out: "KEPT\n" });
  });

  it("keeps what waits when it ends, and goes on with it when it is started again", async (test) => {
    write("handler.js", 'throw new Error("not today");');
    const going = await start(test);
    const job = (await run("run", "shout", '{"text":"later"}', "--no-wait")).out.trim();
    going.interrupt();
    expect(await going.ended).toBe(0);
    write("handler.js", handler("toUpperCase()"));
    await start(test);
    expect(await run("status", "shout", job, "--wait")).toMatchObject({ exit: 0, out: "LATER\n" });
  });

  it("runs one job with --input, and ends with its verdict", async () => {
    write("handler.js", handler("toUpperCase()"));
    write("input.json", '{"text":"filed"}');
    const done = await dev(".", "--input", "input.json");
    expect(done).toMatchObject({ exit: 0, out: "FILED\n", err: expect.stringContaining("│ shouting filed") });
    const failed = await dev(".", "--input", "{}");
    expect(failed).toMatchObject({ exit: 1, out: "", err: expect.stringMatching(/✗ job .*TypeError: /) });
    const whole = await dev("handler.js", "--input", '{"text":"x"}', "--json");
    expect(JSON.parse(whole.out)).toMatchObject({ status: "COMPLETED", output: "X" });
  });

  it("leaves nothing behind of a job with --input that could not run", async (test) => {
    write("handler.js", 'throw new Error("no weights here");');
    expect(await dev(".", "--input", '{"text":"first"}')).toMatchObject({ exit: 1, out: "" });
    const going = startMillrace(test, ["dev", ".", "--input", '{"text":"second"}'], { folder });
    await going.shows("did not start");
    going.interrupt();
    expect(await going.ended).toBe(130);
    write("handler.js", handler("toUpperCase()"));
    const { exit, err } = await dev(".", "--input", '{"text":"third"}');
    expect(exit).toBe(0);
    expect(err.match(/│ shouting .*/g)).toEqual(["│ shouting third"]);
  });

  it("runs the checks of a folder with --test, and says what came instead", async () => {
    write("handler.js", handler("toUpperCase()"));
    write("tests/a.json", '{"input":{"text":"a"},"output":"A"}');
    write("tests/b.json", '{"input":{"text":"b"},"output":"b"}');
    write("tests/.cache/of-a-program.json", "[]");
    write("tests/more/c.json", '{"input":{},"error":"undefined"}');
    const { exit, out, err } = await dev(".", "--test", "tests");
    expect(exit).toBe(1);
    expect(out).toMatch(/^✓ a.json .*\n✗ b.json .*\n {4}expected: "b"\n {4}came: {5}"B"\n✓ more\/c.json .*\n$/);
    expect(err).toContain("2 of 3 passed");
    rmSync(join(folder, "tests/b.json"));
    expect(await dev(".", "--test", "tests")).toMatchObject({ exit: 0 });
  });

  it("shows an error of the handler once, with the handler's own frames alone", async (test) => {
    write("handler.js", "export default () => { throw new Error('no weights here'); };");
    const going = await start(test);
    expect((await run("run", "shout", "{}")).exit).toBe(1);
    await going.shows(/✗ job \w{6} {2}Error: no weights here .*\n +at .*handler\.js:1:\d+\)?\n/);
    await run("run", "shout", "{}");
    await going.shows("the same traceback as before, 2 times now");
    expect(going.screen().match(/no weights here/g)).toHaveLength(2); // at the end of each job
    expect(going.screen().match(/^ +at /gm)).toHaveLength(1);
  });

  it("tells whoever works with another server how to call this one, and programs where it is", async (test) => {
    folder = join(folder, "my shout");
    write("handler.js", handler("toUpperCase()"));
    const env = { MILLRACE_URL: "http://127.0.0.1:1", MILLRACE_API_KEY: "mr_other" };
    const going = startMillrace(test, ["dev", "."], { folder, env });
    await going.shows("Ctrl-C ends it");
    const [pasted = ""] = /\(cd '.*/.exec(going.screen()) ?? [];
    const path = `${join(folder, "..")}:${process.env.PATH}`;
    write("../millrace", `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`);
    chmodSync(join(folder, "../millrace"), 0o755);
    expect(execFileSync("sh", ["-c", pasted], { env: { ...env, PATH: path }, encoding: "utf8" })).toBe("HELLO\n");
    going.interrupt();
    await going.ended;
    const told = startMillrace(test, ["dev", ".", "--json"], { folder });
    await told.shows('"event":"dev.ready"');
    const ready =
      told
        .screen()
        .split("\n")
        .find((line) => line.includes("dev.ready")) ?? "";
    expect(JSON.parse(ready)).toMatchObject({ level: "info", name: "my shout", url: expect.stringMatching(/^http:/) });
    expect(await run("run", "my shout", '{"text":"told"}')).toMatchObject({ out: "TOLD\n" });
    for (const event of ["job.submitted", "job.taken", "job.ended"]) await told.shows(`"event":"${event}"`);
  });

  it("is no server to deploy to, and none at all once it has ended", async (test) => {
    write("handler.js", handler("toUpperCase()"));
    const going = await start(test);
    const none = { exit: 2, err: expect.stringContaining("No server is known here") };
    expect(await run("deploy", ".")).toMatchObject(none);
    going.interrupt();
    await going.ended;
    expect(await run("endpoint", "list")).toMatchObject(none);
  });

  it("leaves one that serves the folder already alone, and says how to speak to it", async (test) => {
    write("handler.js", handler("toUpperCase()"));
    await start(test);
    for (const more of [[], ["--input", '{"text":"second"}']])
      expect(await millrace(["dev", ".", ...more], { folder, env: { MILLRACE_CLONE: "/src" } })).toMatchObject({
        exit: 1,
        out: "",
        err: expect.stringMatching(
          /A millrace dev already serves .*shout: send its jobs there, or stop it first\.\s+cd \S+ && npx --prefix \/src millrace run/,
        ),
      });
    expect(await run("run", "shout", '{"text":"first"}')).toMatchObject({ exit: 0, out: "FIRST\n" });
  });

  it("leaves the data of a server in its folder alone", async (test) => {
    write("handler.js", handler("toUpperCase()"));
    const server = startMillrace(test, ["serve", "--port", "0"], { folder });
    await server.shows("server.ready");
    const before = readdirSync(join(folder, ".millrace")).sort();
    for (const more of [[], ["--input", "{}"]])
      expect(await dev(".", ...more)).toMatchObject({
        exit: 2,
        err: expect.stringMatching(/has the data of a server that was started in this folder.*\s+mkdir my-handler/s),
      });
    expect(readdirSync(join(folder, ".millrace")).sort()).toEqual(before);
    expect(await run("endpoint", "list")).toMatchObject({ exit: 0 });
  });

  it("ends with its terminal, and so does its worker", async (test) => {
    write("handler.js", `console.log("worker " + process.pid);\n${handler("toUpperCase()")}`);
    const going = startOnTerminal(test, ["dev", "."], { folder });
    await going.shows("Ctrl-C ends it");
    await run("run", "shout", '{"text":"hello"}');
    await going.shows(/worker \d+/);
    const worker = Number(/worker (\d+)/.exec(going.screen())?.[1]);
    going.hangUp();
    await expect.poll(() => existsSync(`/proc/${worker}`), polled).toBe(false);
    await expect.poll(async () => (await run("health", "shout")).exit, polled).toBe(2);
  });

  it("takes the next port if another program has the first one, and says so of one that is asked for", async (test) => {
    write("handler.js", handler("toUpperCase()"));
    const one = await start(test);
    const port = Number(/http:\/\/127\.0\.0\.1:(\d+)/.exec(one.screen())?.[1]);
    write("other/handler.js", handler("trim()"));
    const other = startMillrace(test, ["dev", "other"], { folder });
    await other.shows("Ctrl-C ends it");
    expect(Number(/http:\/\/127\.0\.0\.1:(\d+)/.exec(other.screen())?.[1])).toBeGreaterThan(port);
    write("third/handler.js", handler("trim()"));
    const refused = await dev("third", "--port", String(port));
    expect(refused).toMatchObject({ exit: 1, err: expect.stringContaining(`127.0.0.1:${port} is in use`) });
  });

  it.each([
    [["dev", "nowhere"], "nowhere does not exist"],
    [["dev", "."], "There is no handler.ts, handler.js, handler.mjs, handler.py in ."],
    [["dev", "notes.txt"], "notes.txt is no handler"],
    [["dev", "handler.js", "--env", "nonsense"], "Write NAME=value"],
    [["dev", "handler.js", "--port", "none"], "Write a whole number"],
    [["dev", "handler.js", "--input", "[1]"], "must be a JSON object"],
    [["dev", "handler.js", "--input", "inptu.json"], "inptu.json cannot be read: no such file"],
    [["dev", "handler.js", "--test", "tests"], "no .json files in"],
    [["dev", "handler.js", "--input", "{}", "--test", "tests"], "give one of them"],
  ])("%j is refused in words", async (words, why) => {
    write("notes.txt", "");
    if (words[1] !== ".") write("handler.js", handler("trim()"));
    mkdirSync(join(folder, "tests"), { recursive: true });
    expect(await run(...words)).toMatchObject({ exit: 2, out: "", err: expect.stringContaining(why) });
  });

  it.each([
    [60, {}, /\[32m✓ job/],
    [200, { NO_COLOR: "1" }, / {3}✓ job/],
  ])(
    "on a terminal of %i columns shows aligned lines, with colours if the user wants them",
    async (columns, env, mark) => {
      write("handler.js", handler("toUpperCase()"));
      const ending = { onTestFinished: () => {} };
      const going = startOnTerminal(ending, ["dev", "."], { folder, columns, env });
      await going.shows("Ctrl-C ends it");
      await run("run", "shout", '{"text":"hello"}');
      await going.shows(mark);
      write("handler.js", handler("toLowerCase()"));
      await going.shows("handler.js changed");
      going.interrupt();
      expect(await going.ended).toBe(0);
      const lines = stripVTControlCharacters(going.screen())
        .split(/\r?\n/)
        .filter((line) => line.includes("job ") || line.includes("changed"));
      const wide = columns < 80 ? 10 : 16;
      for (const line of lines)
        expect(line).toMatch(new RegExp(`^ {2}\\d\\d:\\d\\d:\\d\\d {2}${"shout".padEnd(wide)} \\S `));
    },
  );
});
