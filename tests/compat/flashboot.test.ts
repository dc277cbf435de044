import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { complete, frozen, inState, letterOf, workersOf } from "../e2e/life.js";
import { call, startServer, type TestServer, until } from "../harness.js";
import * as stock from "./stock.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
});
afterAll(async () => {
  await server?.end();
  stock.removeFolders();
});

const flashboot = { flashboot: true, idleTimeout: 1 };

describe.concurrent("a stock worker with FlashBoot", () => {
  it("is frozen with its pinging process, and resumes with both", async () => {
    const own = await stock.deploy(server, "plain", flashboot);
    const first = await complete(server, own.id, { do: "pids" });
    const { leader, child } = first.output;
    await frozen(server, own.id, leader, child);
    const next = await complete(server, own.id, { do: "pids" });
    expect(next).toMatchObject({ workerId: first.workerId, output: { leader, child }, retries: 0 });
    expect([letterOf(leader), letterOf(child)]).not.toContain("T");
    // Messages that it missed while frozen do not confuse it: it is frozen and woken again, and keeps pinging.
    await frozen(server, own.id);
    const third = await complete(server, own.id, { do: "value", value: 3 });
    expect(third).toMatchObject({ workerId: first.workerId, output: 3, retries: 0 });
    expect(own.notes()).toEqual([]);
  });

  it("whose process dies while it is frozen ends its pinging process too", async () => {
    const own = await stock.deploy(server, "plain", flashboot);
    const first = await complete(server, own.id, { do: "pids" });
    const { leader, child } = first.output;
    await frozen(server, own.id, leader, child);
    process.kill(leader, "SIGKILL");
    await inState(server, own.id, "ended", { id: first.workerId });
    await until(() => !stock.runs(child));
    const next = await complete(server, own.id, { do: "value", value: 2 });
    expect(next).toMatchObject({ output: 2, retries: 0 });
    expect(next.workerId).not.toBe(first.workerId);
  });

  it("exits by itself when it is stopped while frozen", async () => {
    const own = await stock.deploy(server, "plain", flashboot);
    const { workerId, output } = await complete(server, own.id, { do: "pids" });
    await frozen(server, own.id, output.leader, output.child);
    await call(server, "PATCH", `/v1/endpoints/${own.id}`, { flashboot: false });
    const ended = await inState(server, own.id, "ended", { id: workerId });
    expect(ended.exit.signal).not.toBe("SIGKILL");
    await until(() => !stock.runs(output.leader) && !stock.runs(output.child));
    expect(await workersOf(server, own.id)).toEqual([]);
  });
});

describe("a stock worker whose handler cannot be imported", () => {
  it("is reported as failed at its start, with Python's own message", async () => {
    const own = await stock.deploy(server, "broken");
    await stock.submit(server, own.id, {});
    const { exit } = await inState(server, own.id, "ended");
    expect(exit).toMatchObject({
      code: 1,
      cause: "start",
      note: expect.stringContaining("RuntimeError: the weights are not where they should be"),
    });
  });
});
