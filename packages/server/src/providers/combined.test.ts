import { beforeEach, describe, expect, it } from "vitest";
import type { WorkerSpec } from "../provider.js";
import { plainSpec } from "../testing/facts-fixture.js";
import { StrictProvider } from "../testing/strict-provider-fixture.js";
import { combined } from "./combined.js";
import { linesOf } from "./contracts/log-lines.js";

describe("Several providers as one", () => {
  const never = new AbortController().signal;
  let first: StrictProvider;
  let second: StrictProvider;
  let third: StrictProvider;
  const join = () =>
    combined({ first, second, third }, ({ from }: WorkerSpec) =>
      "directory" in from ? "first" : from.image === "other" ? "third" : "second",
    );
  const specs = {
    first: plainSpec("worker00000001"),
    second: { ...plainSpec("worker00000002"), from: { image: "any" } },
    third: { ...plainSpec("worker00000003"), from: { image: "other" } },
  };
  beforeEach(() => {
    [first, second, third] = [new StrictProvider(), new StrictProvider(), new StrictProvider()];
  });

  it("start a worker where its spec belongs, and find it there afterwards without its handle", async () => {
    const all = join();
    for (const [name, spec] of Object.entries(specs)) {
      await all.start(spec);
      await all.pause(spec.workerId);
      await all.resume(spec.workerId);
      await all.stop(spec.workerId);
      expect({ first, second, third }[name]?.calls.map((call) => call.split(" ")[0])).toEqual([
        "start",
        "pause",
        "resume",
        "stop",
      ]);
    }
    expect([first, second, third].flatMap(({ violations }) => violations)).toEqual([]);
  });

  it("find a worker of an earlier server by its handle's provider, and without a handle at the first", async () => {
    await third.start(specs.third);
    const all = join();
    const handle = { provider: "third", ref: {} };
    expect(await all.look(specs.third.workerId, handle)).toMatchObject({ state: "running" });
    await all.kill(specs.third.workerId, handle);
    expect(third.calls).toEqual(["start worker00000003", "look worker00000003", "kill worker00000003"]);
    expect(await all.look("worker00000009")).toMatchObject({ state: "unknown" });
    expect(first.calls).toEqual(["look worker00000009"]);
  });

  it("neither look for nor kill a worker of a provider that this server does not have", async () => {
    const all = join();
    for (const provider of ["fourth", "toString"]) {
      const handle = { provider, ref: {} };
      await expect(all.look("worker00000009", handle)).rejects.toThrow(`no provider '${provider}'`);
      await expect(all.kill("worker00000009", handle)).rejects.toThrow(`no provider '${provider}'`);
    }
    expect([first, second, third].flatMap(({ calls }) => calls)).toEqual([]);
  });

  it("report the end of a worker of any of them, which is then found there", async () => {
    const all = join();
    const ended: string[] = [];
    all.onEnd((workerId) => ended.push(workerId));
    for (const [each, { workerId }] of [
      [first, specs.first],
      [third, specs.third],
    ] as const) {
      each.end(workerId, { code: 3 });
      expect(await all.look(workerId)).toMatchObject({ state: "ended", exit: { code: 3 } });
    }
    expect(ended).toEqual(["worker00000001", "worker00000003"]);
  });

  it("show the log of a forgotten worker from the provider in its handle", async () => {
    const all = join();
    await all.start(specs.second);
    second.say(specs.second.workerId, 5, "a line");
    second.end(specs.second.workerId);
    await all.forget(specs.second.workerId);
    const lines = async (provider: string) => {
      const texts: string[] = [];
      for await (const some of all.logs(specs.second.workerId, { provider, ref: {} }, { signal: never }))
        texts.push(...some.map(({ text }) => text));
      return texts;
    };
    expect([await lines("second"), await lines("third")]).toEqual([["a line"], []]);
    expect(await linesOf(all, specs.second.workerId)).toEqual([]);
  });
});
