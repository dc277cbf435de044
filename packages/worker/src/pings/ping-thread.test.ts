import { existsSync } from "node:fs";
import path from "node:path";
import { describe, expect, it, vi } from "vitest";
import { eachWithHome, home, run, server, write } from "../testing/run-handler-fixture.js";
import { type Call, isPingOf } from "../testing/stub-server.js";

eachWithHome();

/**
 * A module that keeps its thread busy until the test lets go: it writes a marker, then checks for a file without a
 * pause.
 */
const busy = () => `import fs from "node:fs";
  export const busyUntilLetGo = () => {
    fs.writeFileSync(${JSON.stringify(path.join(home, "busy"))}, "");
    const patience = Date.now() + 30_000;
    while (!fs.existsSync(${JSON.stringify(path.join(home, "go"))}) && Date.now() < patience);
  };`;
const isBusy = () => vi.waitFor(() => expect(existsSync(path.join(home, "busy"))).toBe(true), { timeout: 30_000 });
const letGo = () => write({ go: "" });

/** Resolves once `count` calls satisfy the question. */
const several = (count: number, question: (call: Call) => boolean) =>
  server.seen((call) => question(call) && server.calls.filter(question).indexOf(call) === count - 1);

describe("while a handler blocks its thread, its worker continues to ping", () => {
  it.each([
    { it: "with the running job", file: "handler.ts" },
    { it: "even if the handler's imports need hooks", file: "handler.mjs" },
  ])("$it", async ({ file }) => {
    write({
      [file]: 'import { busyUntilLetGo } from "./busy.mjs"; export default () => busyUntilLetGo();',
      "busy.mjs": busy(),
    });
    run([home]);
    server.give({ id: "a", input: {} });
    await several(3, isPingOf("a"));
    expect(server.named("job-done")).toEqual([]);
    letGo();
    expect(await server.result("a")).toEqual({ output: null });
  });

  it("with all jobs of one take, though only the first one runs", async () => {
    write({
      "handler.mjs": `import { busyUntilLetGo } from "./busy.mjs";
        export const options = { concurrency: 2 };
        export default () => busyUntilLetGo();`,
      "busy.mjs": busy(),
    });
    server.give({ id: "a", input: {} }, { id: "b", input: {} });
    run([home]);
    await several(2, isPingOf("a,b"));
    expect(server.named("ping").every((call) => call.query.get("job_id") !== "a")).toBe(true);
    letGo();
    await Promise.all([server.result("a"), server.result("b")]);
  });

  it("without a list if it may have been given a job that it could not read yet", async () => {
    write({
      "handler.mjs": `import { busyUntilLetGo } from "./busy.mjs";
        import fs from "node:fs";
        import { setTimeout } from "node:timers/promises";
        export const options = { concurrency: 2 };
        export default async (input, job) => {
          if (job.id !== "a") return "read";
          while (!fs.existsSync(new URL("./start", import.meta.url))) await setTimeout(10);
          busyUntilLetGo();
        };`,
      "busy.mjs": busy(),
    });
    run([home]);
    server.give({ id: "a", input: {} });
    await server.seen((call) => call.query.get("batch_size") === "1");
    write({ start: "" });
    await isBusy();
    server.give({ id: "b", input: {} });
    const isLifeSign = (call: Call) => call.name === "job-done-batch" && call.text === "[]";
    await several(2, isLifeSign);
    letGo();
    expect(await server.result("b")).toMatchObject({ output: "read" });
    const doubtful = server.calls.slice(server.calls.findIndex(isLifeSign));
    const untilResult = doubtful.slice(
      0,
      doubtful.findIndex((call) => call.name.startsWith("job-done") && call.text.includes("read")),
    );
    expect(untilResult.filter(isPingOf("a"))).toEqual([]);
  });
});

describe("the thread that pings", () => {
  it("leaves a job out once its result has arrived, and lets the worker end", async () => {
    write({ "handler.mjs": "export default () => 1;" });
    const worker = run([home]);
    server.give({ id: "a", input: {} });
    await server.result("a");
    await several(2, isPingOf(undefined));
    worker.process.kill("SIGTERM");
    server.releaseTake();
    expect(await worker.ended).toMatchObject({ code: 0, stderr: "" });
    expect(server.named("ping").filter(isPingOf("a"))).toEqual([]);
  });

  it("makes the worker leave when the server refuses it", async () => {
    write({ "handler.mjs": "export default () => new Promise(() => {});" });
    server.answer("ping", ...Array.from({ length: 4 }, () => ({ status: 401 })));
    const worker = run([home]);
    server.give({ id: "a", input: {} });
    expect((await worker.ended).code).toBe(1);
  });
});
