import { describe, expect, it } from "vitest";
import { lastingWorkersContract } from "./contracts/lasting-workers.js";
import { follower } from "./contracts/log-lines.js";
import { type Abilities, ContractScene, endOf, id, type OpenedProvider } from "./contracts/scene.js";
import { logsContract } from "./contracts/worker-logs.js";

/** The promises of every provider about its workers. `open` makes a separate host. */
export function providerContract(name: string, open: () => Promise<OpenedProvider>, abilities: Abilities = {}): void {
  describe(name, () => {
    const scene = new ContractScene(open, abilities);
    const { launch, start, wish } = scene;

    it("starts a worker with its specified environment, and none of the server's variables", async () => {
      process.env.MILLRACE_TEST_OURS = "ours";
      const { handle, puppet } = await start();
      delete process.env.MILLRACE_TEST_OURS;
      const { env } = (await puppet.ask("where")) as { env: Record<string, string> };
      expect(env).toMatchObject(wish().env);
      expect(env).not.toHaveProperty("MILLRACE_TEST_OURS");
      expect(await scene.provider.look(id)).toEqual({ state: "running", handle });
    });

    it("does not know a worker that was never started, and ignores calls about it", async () => {
      expect(await scene.provider.look(id)).toMatchObject({ state: "unknown" });
      await scene.provider.pause(id);
      await scene.provider.resume(id);
      await scene.provider.stop(id);
      await scene.provider.kill(id, undefined);
      await scene.provider.forget(id);
      expect(await scene.provider.logTail(id)).toBe("");
    });

    it("starts a worker once, however often it is asked to", async () => {
      const { handle, puppet } = await start();
      expect(await scene.provider.start(launch())).toEqual(handle);
      expect([await puppet.ask("hello"), scene.stage.unmet(id)]).toEqual(["hello", 0]);
    });

    it("starts a worker once when it is asked twice at the same moment", async () => {
      const [one, two] = await Promise.all([scene.provider.start(launch()), scene.provider.start(launch())]);
      expect(two).toEqual(one);
    });

    it("says in one sentence why it cannot start a worker", async () => {
      expect(scene.opened.unstartable.length).toBeGreaterThan(0);
      for (const [why, make] of scene.opened.unstartable) {
        await expect(scene.provider.start(make(wish()))).rejects.toThrow(why);
        expect(await scene.provider.look(id)).toMatchObject({ state: "unknown" });
      }
      await start();
    });

    it.each([0, 3])("reports that a worker ended with code %i", async (code) => {
      const { puppet } = await start();
      const end = endOf(scene.provider, id);
      puppet.do("exit", code);
      await end;
      expect(await scene.provider.look(id)).toEqual({ state: "ended", exit: { code } });
    });

    it("reports by which signal a worker ended", async () => {
      const { puppet } = await start();
      const end = endOf(scene.provider, id);
      puppet.do("die", "SIGSEGV");
      await end;
      expect(await scene.provider.look(id)).toEqual({ state: "ended", exit: { signal: "SIGSEGV" } });
    });

    it("asks only the leader to stop", async () => {
      const { puppet } = await start();
      puppet.do("child", "child");
      const child = await scene.stage.meet("child");
      puppet.do("stay");
      await puppet.ask("hello");
      await scene.provider.stop(id);
      expect(await puppet.hear()).toBe("asked to stop");
      expect(await child.ask("hello")).toBe("hello");
    });

    it("ends a worker that ignores being asked to stop", async () => {
      await start();
      const end = endOf(scene.provider, id);
      await scene.provider.stop(id);
      await end;
      expect(await scene.provider.look(id)).toEqual({ state: "ended", exit: { signal: "SIGTERM" } });
    });

    it("kills a worker with all its descendants", async () => {
      const { handle, puppet } = await start();
      puppet.do("stay");
      puppet.do("child", "child");
      const child = await scene.stage.meet("child");
      child.do("stay");
      child.do("child", "grandchild");
      const grandchild = await scene.stage.meet("grandchild");
      const end = endOf(scene.provider, id);
      await scene.provider.kill(id, handle);
      await Promise.all([puppet.ended, child.ended, grandchild.ended, end]);
      expect(await scene.provider.look(id)).toEqual({ state: "ended", exit: { signal: "SIGKILL" } });
    });

    it("lets no child outlive its leader", async () => {
      const { puppet } = await start();
      puppet.do("child", "child");
      const child = await scene.stage.meet("child");
      puppet.do("exit", 0);
      await child.ended;
    });

    it("leaves other workers alone", async () => {
      const { handle } = await start();
      const { puppet: other } = await start("worker00000002");
      const end = endOf(scene.provider, id);
      await scene.provider.kill(id, handle);
      await end;
      expect(await other.ask("hello")).toBe("hello");
      expect(await scene.provider.look("worker00000002")).toMatchObject({ state: "running" });
    });

    it("keeps the last lines of a worker's output on either pipe, complete or not", async () => {
      const { puppet } = await start();
      await puppet.ask("say", Array.from({ length: 20 }, (_, n) => `line ${n}\n`).join(""));
      // An engine reads the two pipes independently.
      const reader = follower(scene.provider, id);
      await reader.until("line 19");
      reader.leave();
      await puppet.ask("complain", "no such module\nand then");
      const end = endOf(scene.provider, id);
      puppet.do("exit", 1);
      await end;
      const tail = (await scene.provider.logTail(id)).split("\n");
      expect(tail.length).toBeLessThanOrEqual(6);
      expect(tail.slice(-3)).toEqual(["line 19", "no such module", "and then"]);
    });

    logsContract(scene);

    it("forgets a worker that has ended, never one that runs", async () => {
      const { puppet } = await start();
      await scene.provider.forget(id);
      expect(await scene.provider.look(id)).toMatchObject({ state: "running" });
      const end = endOf(scene.provider, id);
      puppet.do("exit", 0);
      await end;
      await scene.provider.forget(id);
      expect(await scene.provider.look(id)).toMatchObject({ state: "unknown" });
    });

    lastingWorkersContract(scene);
  });
}
