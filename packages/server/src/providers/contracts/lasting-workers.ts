import { describe, expect, it } from "vitest";
import { type ContractScene, endOf, id } from "./scene.js";

/** What every provider promises about workers that are paused, and about those that outlive their server. */
export function lastingWorkersContract(scene: ContractScene): void {
  const { launch, start } = scene;
  pausedContract(scene);

  describe("after the server that started it has left", () => {
    it("a worker lives on, is found again, and its end is reported to the next server", async () => {
      const { handle, puppet } = await start();
      await scene.provider.leave(60_000);
      const next = await scene.opened.again();
      expect(await next.look(id)).toEqual({ state: "running", handle });
      expect(await next.start(launch())).toEqual(handle);
      const end = endOf(next, id);
      puppet.do("exit", 7);
      await end;
      expect(await next.look(id)).toEqual({ state: "ended", exit: { code: 7 } });
    });

    it("a worker's end is remembered while another one runs", async () => {
      const { puppet } = await start();
      const { puppet: other } = await start("worker00000002");
      await scene.provider.leave(60_000);
      puppet.do("exit", 7);
      await puppet.ended;
      expect(await other.ask("hello")).toBe("hello");
      const next = await scene.opened.again();
      let end = endOf(next, id);
      // An end may be reported for a worker that still runs: it only means that its state must be looked up.
      while ((await next.look(id)).state === "running") {
        await end;
        end = endOf(next, id);
      }
      expect(await next.look(id)).toEqual({ state: "ended", exit: { code: 7 } });
    });
  });
}

/** What is promised about paused workers. */
function pausedContract(scene: ContractScene): void {
  const { start } = scene;
  describe("paused", () => {
    /** A worker with a child, both sent a question while frozen. */
    const paused = async () => {
      const { handle, puppet } = await start();
      puppet.do("child", "child");
      const child = await scene.stage.meet("child");
      await scene.provider.pause(id);
      for (const each of [puppet, child]) each.do("hello");
      return { handle, puppet, child };
    };
    /** Long enough for any running process to answer. */
    const another = async () => {
      const { puppet: other } = await start("worker00000002");
      for (let n = 0; n < 100; n++) await other.ask("hello");
    };

    it("a worker makes no progress with any of its processes, still counts as running, and continues when resumed", async () => {
      const { handle, puppet, child } = await paused();
      await another();
      expect([puppet.hasSpoken, child.hasSpoken]).toEqual([false, false]);
      expect(await scene.provider.look(id)).toEqual({ state: "running", handle });
      await scene.provider.resume(id);
      expect([await puppet.hear(), await child.hear()]).toEqual(["hello", "hello"]);
    });

    it("again, or resumed again, a worker stays as after the first time", async () => {
      const { puppet } = await paused();
      await scene.provider.pause(id);
      await another();
      expect(puppet.hasSpoken).toBe(false);
      await scene.provider.resume(id);
      await scene.provider.resume(id);
      expect(await puppet.hear()).toBe("hello");
      expect(await puppet.ask("hello")).toBe("hello");
    });

    it("a worker can be asked to stop, and does", async () => {
      await paused();
      const end = endOf(scene.provider, id);
      await scene.provider.stop(id);
      await end;
      expect(await scene.provider.look(id)).toEqual({ state: "ended", exit: { signal: "SIGTERM" } });
    });

    it("a worker can be killed with its children", async () => {
      const { handle, puppet, child } = await paused();
      const end = endOf(scene.provider, id);
      await scene.provider.kill(id, handle);
      await Promise.all([puppet.ended, child.ended, end]);
      expect(await scene.provider.look(id)).toEqual({ state: "ended", exit: { signal: "SIGKILL" } });
    });

    it("or resumed after its end, a worker still counts as ended", async () => {
      const { puppet } = await start();
      const end = endOf(scene.provider, id);
      puppet.do("exit", 7);
      await end;
      await scene.provider.pause(id);
      await scene.provider.resume(id);
      expect(await scene.provider.look(id)).toEqual({ state: "ended", exit: { code: 7 } });
    });

    it("a worker is found by the next server, which resumes it", async () => {
      const { handle, puppet } = await paused();
      await scene.provider.leave(60_000);
      const next = await scene.opened.again();
      expect(await next.look(id)).toEqual({ state: "running", handle });
      await next.resume(id);
      expect(await puppet.hear()).toBe("hello");
    });
  });
}
