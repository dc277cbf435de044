import { expect, it } from "vitest";
import { runProgram } from "./run-program.js";

const run = (command: string, args: string[], timeoutMs?: number) =>
  runProgram(command, args, { env: process.env, cwd: ".", ...(timeoutMs === undefined ? {} : { timeoutMs }) });
const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;

it("A program that is not there is told at once, and holds nothing", async () => {
  const before = timers();
  expect(await run("millrace-has-no-such-program", [], 3_600_000)).toEqual({
    code: null,
    output: expect.stringContaining("ENOENT"),
  });
  expect(timers()).toBeLessThanOrEqual(before);
});

it("A program's code and words are both kept, and its time is not held either", async () => {
  const before = timers();
  const script = "console.log('out'); console.error('err'); process.exit(3)";
  expect(await run(process.execPath, ["-e", script], 3_600_000)).toMatchObject({
    code: 3,
    output: expect.stringMatching(/out[\s\S]*err|err[\s\S]*out/),
  });
  expect(timers()).toBeLessThanOrEqual(before);
});

it("A program that does not end is ended at its time", async () => {
  expect(await run(process.execPath, ["-e", "setInterval(() => {}, 1000)"], 50)).toEqual({
    code: 1,
    output: "ended by SIGKILL",
  });
});
