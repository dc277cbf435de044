import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { providerContract } from "../contract.js";
import type { OpenedProvider } from "../contracts/scene.js";
import { Stage } from "../puppet-fixture.js";
import { keeperGone, newHost, providerOf, specOf } from "./local-host-fixture.js";
import { handlerCommand } from "./process-provider.js";
import { killGroup, statOf } from "./process-table.js";

async function open(): Promise<OpenedProvider> {
  const dataDir = newHost();
  let provider = providerOf(dataDir);
  return {
    provider,
    launch: specOf,
    unstartable: [
      [/no-such-command.*could not be started/, (wish) => ({ ...specOf(wish), command: ["./no-such-command"] })],
      [/gone/, (wish) => specOf({ ...wish, directory: join(wish.directory, "gone") })],
      [/no handler\.ts.*no start command/, (wish) => ({ ...specOf(wish), command: [] })],
    ],
    again: async () => (provider = providerOf(dataDir)),
    end: async () => {
      await provider.leave(0);
      await keeperGone(dataDir);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

providerContract("Local processes keep the provider's contract", open);

describe("A process that only has a worker's old id", () => {
  let stage: Stage;
  beforeEach(async () => {
    stage = new Stage();
    await stage.open();
  });
  afterEach(() => stage.close());

  it("is never killed for it", async () => {
    const stranger = await stage.stranger("stranger");
    killGroup("worker00000001", { pid: stranger.pid, startTime: "1" });
    expect(await stranger.ask("hello")).toBe("hello");
  });

  it("is never killed for it, even if it is another worker", async () => {
    const other = await stage.stranger("other", { RUNPOD_POD_ID: "worker00000002" });
    killGroup("worker00000001", { pid: other.pid, startTime: "1" });
    expect(await other.ask("hello")).toBe("hello");
  });

  it("is killed if it is the worker itself", async () => {
    const own = await stage.stranger("own", { RUNPOD_POD_ID: "worker00000001" });
    killGroup("worker00000001", { pid: own.pid, startTime: statOf(own.pid)!.startTime });
    await own.ended;
  });

  it("is killed if its leader is gone and its children carry the worker's id", async () => {
    const leader = await stage.stranger("leader", { RUNPOD_POD_ID: "worker00000001" });
    leader.do("child", "child");
    const child = await stage.meet("child");
    leader.do("die", "SIGKILL");
    await leader.ended;
    killGroup("worker00000001", { pid: leader.pid, startTime: "1" });
    await child.ended;
  });
});

describe("The command of a handler's directory", () => {
  let directory: string;
  beforeEach(() => {
    directory = newHost();
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it.each([
    [["handler.ts", "handler.py"], "handler.ts"],
    [["handler.js"], "handler.js"],
    [["handler.mjs"], "handler.mjs"],
  ])("of %j is our own runner with %s", (files, chosen) => {
    for (const file of files) writeFileSync(join(directory, file), "");
    const [node, runner, handler] = handlerCommand(directory) ?? [];
    expect([node, handler]).toEqual([process.execPath, join(directory, chosen)]);
    expect(runner).toMatch(/run-handler\.js$/);
  });

  it("of a Python handler is python3, or the interpreter of its own environment", () => {
    writeFileSync(join(directory, "handler.py"), "");
    expect(handlerCommand(directory)).toEqual(["python3", "-u", "handler.py"]);
  });

  it("is undefined if there is no handler", () => {
    expect(handlerCommand(directory)).toBeUndefined();
  });
});
