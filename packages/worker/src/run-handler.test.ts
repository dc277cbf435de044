import { readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { eachWithHome, home, run, server, tryOut, write } from "./testing/run-handler-fixture.js";
import type { Call } from "./testing/stub-server.js";

eachWithHome();

describe("a handler is found and run", () => {
  it("in TypeScript, with files of its own, packages beside it and this SDK, until SIGTERM", async () => {
    write({
      "handler.ts": `import type { Job } from "@millrace/worker";
        import { serve } from "@millrace/worker";
        import { shout } from "./lib/shout.ts";
        import { mark } from "marks";
        import { readFileSync } from "node:fs";
        const greeting: string = readFileSync(new URL("./greeting.txt", import.meta.url), "utf8");
        export default async (input: { name: string }, job: Job) => {
          job.log.info("hello", { to: input.name });
          return shout(greeting + " " + input.name) + mark + typeof serve;
        };`,
      "lib/shout.ts": "export const shout = (text: string): string => text.toUpperCase();",
      "greeting.txt": "hello",
      "node_modules/marks/package.json": '{"name":"marks","type":"module","exports":{"import":"./marks.js"}}',
      "node_modules/marks/marks.js": 'export const mark = "!";',
    });
    const worker = run([home]);
    server.give({ id: "a", input: { name: "Ada" } });
    expect(await server.result("a")).toEqual({ output: "HELLO ADA!function" });
    await server.seen((call) => call.name === "job-take" && call.status === -1);
    worker.process.kill("SIGTERM");
    server.releaseTake();
    const { stdout, stderr, code } = await worker.ended;
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toEqual({ requestId: "a", message: 'hello {"to":"Ada"}', level: "INFO" });
  });

  it("a second time without a build, and with a build when a file has changed", async () => {
    write({
      "handler.ts": 'import { n } from "./n.ts"; export default () => n as number;',
      "n.ts": "export const n = 1;",
    });
    const built = () => readdirSync(path.join(home, ".cache")).filter((name) => name.endsWith(".mjs"));
    expect((await tryOut(["--test-input", "{}"])).stdout).toBe("1\n");
    const [first] = built();
    // The second start must run the build that the first one kept: change it to see.
    writeFileSync(path.join(home, ".cache", first as string), "export default () => 'kept';");
    expect((await tryOut(["--test-input", "{}"])).stdout).toBe('"kept"\n');
    write({ "n.ts": "export const n = 2;" });
    expect((await tryOut(["--test-input", "{}"])).stdout).toBe("2\n");
    expect(built().length).toBe(2);
  });

  it.each([
    {
      it: "a module",
      file: "handler.mjs",
      source: 'import { serve } from "@millrace/worker"; export default () => typeof serve;',
    },
    { it: "CommonJS", file: "handler.js", source: 'module.exports = () => "function";' },
    {
      it: "compiled CommonJS",
      file: "handler.js",
      source: 'exports.__esModule = true; exports.default = () => "function";',
    },
  ])("in JavaScript as $it", async ({ file, source }) => {
    write({ [file]: source });
    expect(await tryOut(["--test-input={}"])).toMatchObject({ stdout: '"function"\n', code: 0 });
  });

  it("with the options beside it", async () => {
    write({ "handler.mjs": "export const options = { concurrency: 4 }; export default () => 1;" });
    run([home]);
    const take = await server.seen((call) => call.name.startsWith("job-take"));
    expect([take.name, take.query.get("batch_size")]).toEqual(["job-take-batch", "4"]);
  });

  it("that serves by itself", async () => {
    write({ "handler.ts": 'import { serve } from "@millrace/worker"; serve((input: { n: number }) => input.n + 1);' });
    const worker = run([path.join(home, "handler.ts")]);
    server.give({ id: "a", input: { n: 1 } });
    expect(await server.result("a")).toEqual({ output: 2 });
    worker.process.kill("SIGTERM");
    server.releaseTake();
    expect((await worker.ended).code).toBe(0);
  });
});

describe("a handler is tried out without a server", () => {
  it("printing the list of a streaming handler's chunks", async () => {
    write({ "handler.mjs": "export default function* (input) { yield* input.words; }" });
    expect(await tryOut(["--test-input", '{"words":["a","b"]}'])).toMatchObject({ stdout: '["a","b"]\n', code: 0 });
  });

  it("with the input from the environment", async () => {
    write({ "handler.mjs": "export default (input) => input;" });
    expect((await run([home], { MILLRACE_TEST_INPUT: '{"a":1}' }).ended).stdout).toBe('{"a":1}\n');
  });

  it("failing as the handler does", async () => {
    write({ "handler.mjs": 'export default () => { throw new Error("no"); };' });
    const { stdout, stderr, code } = await tryOut(["--test-input", "{}"]);
    expect([stdout, stderr.split("\n")[0], code]).toEqual(["", "Error: no", 1]);
  });

  it.each([["{"], [""]])("saying that %j is not JSON", async (input) => {
    write({ "handler.mjs": "export default () => 1;" });
    expect(await tryOut(["--test-input", input])).toMatchObject({
      stderr: expect.stringContaining("not JSON"),
      code: 1,
    });
  });
});

describe("a worker that can't start says why", () => {
  it.each([
    {
      it: "no default export",
      file: "handler.ts",
      source: "export const handler = 1;",
      reason: /handler\.ts has no handler/,
    },
    {
      it: "a syntax error",
      file: "handler.ts",
      source: "export default (",
      reason: /handler\.ts:1:16: Unexpected end of file/,
    },
    {
      it: "a syntax error in plain JavaScript",
      file: "handler.js",
      source: "const n = 1;\nexport default (input) => {\n  return input.text n;\n};\n",
      reason: /handler\.js:3\n {2}return input\.text n;\n +\^\nSyntaxError: Unexpected identifier 'n'$/m,
    },
    {
      it: "a missing import",
      file: "handler.ts",
      source: 'import "nowhere";',
      reason: /Could not resolve "nowhere"/,
    },
    {
      it: "an error while loading",
      file: "handler.mjs",
      source: 'throw new Error("no model");',
      reason: /Error: no model/,
    },
    { it: "no handler at all", file: "other.ts", source: "", reason: /No handler found at/ },
  ])("to the log and to the server: $it", async ({ file, source, reason }) => {
    write({ [file]: source });
    const { stderr, code } = await run([home]).ended;
    expect([stderr, code]).toEqual([expect.stringMatching(reason), 1]);
    const [ping] = server.named("ping");
    expect([ping?.query.get("status"), ping?.query.get("check")]).toEqual(["unhealthy", "handler"]);
    expect(ping?.query.get("reason")).toMatch(reason);
    expect(server.calls.length).toBe(1);
  });

  it("with exit code 2 if nothing names a server", async () => {
    write({ "handler.mjs": "export default () => 1;" });
    const { stderr, code } = await tryOut([]);
    expect([stderr, code]).toEqual([
      expect.stringContaining("RUNPOD_WEBHOOK_GET_JOB and RUNPOD_WEBHOOK_POST_OUTPUT"),
      2,
    ]);
  });
});

describe("signals", () => {
  const handler = `export default (input, job) => new Promise((resolve) => {
    job.signal.addEventListener("abort", () => resolve("aborted"));
    job.progress("running");
  });`;
  const isRunning = (call: Call) => call.name === "job-done" && call.body.output === "running";

  it("a second signal asks the running jobs to give up", async () => {
    write({ "handler.mjs": handler });
    const worker = run([home]);
    server.give({ id: "a", input: {} });
    await server.seen(isRunning);
    worker.process.kill("SIGTERM");
    worker.process.kill("SIGINT");
    expect(await server.result("a")).toEqual({ output: "aborted" });
    expect((await worker.ended).code).toBe(0);
  });

  it("an open timer of the handler doesn't keep a stopped worker alive", async () => {
    write({ "handler.mjs": "setInterval(() => {}, 1_000); export default () => 1;" });
    const worker = run([home]);
    await server.seen((call) => call.name === "job-take");
    worker.process.kill("SIGTERM");
    server.releaseTake();
    expect((await worker.ended).code).toBe(0);
  });
});
