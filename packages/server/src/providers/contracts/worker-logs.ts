import { describe, expect, it } from "vitest";
import type { LogLine } from "../../domain/workers/log-line.js";
import { limits } from "../../limits/index.js";
import type { Puppet } from "../puppet-fixture.js";
import { follower, linesOf, textsOf } from "./log-lines.js";
import { type ContractScene, endOf, id } from "./scene.js";

/** What every provider promises about the logs of its workers. */
export function logsContract(scene: ContractScene): void {
  const { launch, start } = scene;
  describe("of a worker's log", () => {
    /** Waits until this text is in the log, which takes a moment. */
    const kept = async (text: string, provider = scene.provider) => {
      const reader = follower(provider, id);
      await reader.until(text);
      reader.leave();
    };
    const ended = async (puppet: Puppet) => {
      const end = endOf(scene.provider, id);
      puppet.do("exit", 0);
      await end;
    };

    it("returns the lines of both pipes in order, each with its pipe and a time later than the one before", async () => {
      const from = Date.now() * 1_000 - 1_000_000;
      const { puppet } = await start();
      for (const n of [1, 2, 3]) {
        await puppet.ask("say", `out ${n}\n`);
        await kept(`out ${n}`);
        await puppet.ask("complain", `err ${n}\n`);
        await kept(`err ${n}`);
      }
      const lines = await linesOf(scene.provider, id);
      const stderr = scene.abilities.mixesPipes ? "stdout" : "stderr";
      expect(lines.map(({ stream, text }) => `${stream} ${text}`)).toEqual(
        [1, 2, 3].flatMap((n) => [`stdout out ${n}`, `${stderr} err ${n}`]),
      );
      expect(new Set(lines.map(({ workerId }) => workerId))).toEqual(new Set([id]));
      const times = lines.map(({ atUs }) => atUs);
      expect(times).toEqual([...new Set(times)].sort((one, other) => one - other));
      expect(times[0]).toBeGreaterThan(from);
      expect(times.at(-1)).toBeLessThan(Date.now() * 1_000 + 1_000_000);
    });

    it("returns the last lines, those from and to a time, and those of a job", async () => {
      const { puppet } = await start();
      const marked = (n: number) => JSON.stringify({ requestId: `job-${n % 2}`, message: `${n}`, level: "INFO" });
      await puppet.ask("say", Array.from({ length: 20 }, (_, n) => `${marked(n)}\n`).join(""));
      await kept(marked(19));
      const all = await linesOf(scene.provider, id);
      expect(textsOf(all)).toEqual(Array.from({ length: 20 }, (_, n) => marked(n)));
      expect(await linesOf(scene.provider, id, { tail: 3 })).toEqual(all.slice(-3));
      expect(await linesOf(scene.provider, id, { tail: 0 })).toEqual([]);
      const sinceUs = (all[12] as LogLine).atUs;
      expect(await linesOf(scene.provider, id, { sinceUs })).toEqual(all.slice(12));
      expect(await linesOf(scene.provider, id, { sinceUs, tail: 2 })).toEqual(all.slice(-2));
      const untilUs = (all[6] as LogLine).atUs;
      expect(await linesOf(scene.provider, id, { untilUs, tail: 2 })).toEqual(all.slice(4, 6));
      expect(await linesOf(scene.provider, id, { sinceUs: (all[5] as LogLine).atUs, untilUs })).toEqual([all[5]]);
      const mine = textsOf(await linesOf(scene.provider, id, { jobId: "job-1", tail: 3 }));
      expect(mine).toEqual([marked(15), marked(17), marked(19)]);
    });

    it("follows it: existing lines, then new ones, each once, until the worker has ended", async () => {
      const { puppet } = await start();
      await puppet.ask("say", "a\nb\nc\n");
      await kept("c");
      const reader = follower(scene.provider, id, { tail: 2 });
      expect(await reader.until("c")).toEqual(["b", "c"]);
      await puppet.ask("say", "d\n");
      expect(await reader.until("d")).toEqual(["b", "c", "d"]);
      await puppet.ask("complain", "last words");
      await ended(puppet);
      expect(await reader.until()).toEqual(["b", "c", "d", "last words"]);
    });

    it("follows from now on if no earlier line is wanted", async () => {
      const { puppet } = await start();
      await puppet.ask("say", "before\n");
      await kept("before");
      const reader = follower(scene.provider, id, { tail: 0 });
      const after = reader.until("after");
      const watcher = follower(scene.provider, id);
      await watcher.until("before");
      watcher.leave();
      await puppet.ask("say", "after\n");
      expect(await after).toEqual(["after"]);
      reader.leave();
    });

    it("stops following on request, without effect on the worker", async () => {
      const { puppet } = await start();
      await puppet.ask("say", "a\n");
      const reader = follower(scene.provider, id);
      await reader.until("a");
      const rest = reader.until();
      reader.leave();
      expect(await rest).toEqual(["a"]);
      expect(await puppet.ask("hello")).toBe("hello");
    });

    it("keeps it after the worker's end, and after the worker is forgotten", async () => {
      const { puppet } = await start();
      await puppet.ask("say", "one\ntwo");
      await puppet.ask("complain", "three\n");
      await ended(puppet);
      const lines = await linesOf(scene.provider, id);
      expect(textsOf(lines).sort()).toEqual(["one", "three", "two"]);
      await scene.provider.forget(id);
      const said = (of: readonly LogLine[]) => of.map(({ stream, text }) => [stream, text]);
      expect(said(await linesOf(scene.provider, id))).toEqual(said(lines));
      expect(await follower(scene.provider, id).until()).toEqual(textsOf(lines));
      await start("worker00000002"); // another worker is still there to be found
      await scene.provider.leave(60_000);
      expect(said(await linesOf(await scene.opened.again(), id))).toEqual(said(lines));
    });

    it("has no lines of an unknown worker, followed or not", async () => {
      expect(await linesOf(scene.provider, "unknown0000000")).toEqual([]);
      expect(await follower(scene.provider, "unknown0000000").until()).toEqual([]);
    });

    it("shows bytes that are not text as replacement characters, and goes on", async () => {
      const { puppet } = await start();
      const bytes = Buffer.concat([Buffer.from("a"), Buffer.from([0xff, 0xc3]), Buffer.from("b\nwör\0ld\n")]);
      await puppet.ask("sayBytes", bytes.toString("base64"));
      await kept("wör\0ld");
      expect(textsOf(await linesOf(scene.provider, id))).toEqual(["a\ufffd\ufffdb", "wör\0ld"]);
    });

    it("never shows the worker's own secret", async () => {
      const secret = "protocol-secret-0123";
      const made = launch();
      await scene.provider.start({ ...made, env: { ...made.env, RUNPOD_AI_API_KEY: secret } });
      const puppet = await scene.stage.meet(id);
      await puppet.ask("say", `calling ?token=${secret}&x\n`);
      const shown = "calling ?token=****&x";
      const reader = follower(scene.provider, id, { tail: 1 });
      expect(await reader.until(shown)).toEqual([shown]);
      reader.leave();
      await ended(puppet);
      await scene.provider.forget(id);
      expect(textsOf(await linesOf(scene.provider, id))).toEqual([shown]);
    });

    it("hides the secrets of its environment from its first line on, also in the stored files", async () => {
      const made = launch();
      const hidden = [
        { variable: "HEADER", at: 7, length: 10 },
        { variable: "TOKEN", at: 0, length: 7 },
      ];
      const env = { ...made.env, HEADER: "Bearer of-header1", TOKEN: 'of-tok"' };
      await scene.provider.start({ ...made, env, hidden });
      const puppet = await scene.stage.meet(id);
      await puppet.ask("say", 'Bearer of-header1, of-tok", {"key":"of-tok\\""}\n');
      const shown = 'Bearer ****, ****, {"key":"****"}';
      const reader = follower(scene.provider, id, { tail: 1 });
      expect(await reader.until(shown)).toEqual([shown]);
      reader.leave();
      expect(await scene.provider.logTail(id)).toContain(shown);
      await ended(puppet);
      await scene.provider.forget(id);
      expect(textsOf(await linesOf(scene.provider, id))).toEqual([shown]);
    });

    it("hides the texts that it was told to hide, from then on, also in the stored files", async () => {
      const { puppet } = await start();
      await puppet.ask("say", "before s3cret\n");
      await kept("before s3cret");
      await scene.provider.hide(id, "s3cret");
      await puppet.ask("say", 'a s3cret, {"key":"s3cret"}\n');
      const shown = 'a ****, {"key":"****"}';
      await kept(shown);
      expect(await scene.provider.logTail(id)).toContain(shown);
      await ended(puppet);
      await scene.provider.forget(id);
      expect(textsOf(await linesOf(scene.provider, id)).at(-1)).toBe(shown);
      await scene.provider.hide("unknown0000000", "s3cret");
    });

    it("hides the secrets of a worker's jobs also if an earlier server started it", async () => {
      const { puppet } = await start();
      await scene.provider.hide(id, "s3cret");
      await scene.provider.leave(60_000);
      const next = await scene.opened.again({ jobSecrets: () => async () => ["s3cret"] });
      const seen = await Promise.all([next.look(id), next.look(id)]);
      expect(seen).toMatchObject([{ state: "running" }, { state: "running" }]);
      await puppet.ask("say", "a s3cret\n");
      await next.hide(id, "other");
      await puppet.ask("say", "a s3cret, an other\n");
      await kept("a ****, an ****", next);
      expect(textsOf(await linesOf(next, id))).toEqual(["a ****", "a ****, an ****"]);
      expect(await next.logTail(id)).toContain("a ****, an ****");
      const end = endOf(next, id);
      puppet.do("exit", 0);
      await end;
      await next.forget(id);
      expect(textsOf(await linesOf(next, id))).toEqual(["a ****", "a ****, an ****"]);
    });

    it("keeps no more of a flood than its bound, even for a slow reader, and delays no other worker", async () => {
      const { puppet } = await start();
      await puppet.ask("say", "first\n");
      const slow = follower(scene.provider, id);
      await slow.until("first");
      await puppet.ask("flood", 12 * 2 ** 20);
      await puppet.ask("say", "last\n");
      expect(await puppet.ask("hello")).toBe("hello");
      await ended(puppet);
      const bytes = textsOf(await linesOf(scene.provider, id)).join("\n").length;
      expect(bytes).toBeLessThanOrEqual(2 * limits.logFileBytesMax);
      const heard = await slow.until();
      expect(heard.join("\n").length).toBeLessThanOrEqual(13 * 2 ** 20);
      await scene.provider.forget(id);
      const keptBytes = textsOf(await linesOf(scene.provider, id)).join("\n").length;
      expect(keptBytes).toBeLessThanOrEqual(2 * limits.logFileBytesMax);
      expect(keptBytes).toBeGreaterThan(0);
    });
  });
}
