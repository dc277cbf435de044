import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogLine } from "../domain/workers/log-line.js";
import { limits } from "../limits/index.js";
import type { LogQuery, Provider, WorkerSpec } from "../provider.js";
import { type Puppet, Stage } from "./puppet-fixture.js";

/** What the contract asks a provider to start; the provider's own test adds the settings of its kind. */
export interface Wish {
  readonly workerId: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** A directory that the worker must see under this path: its puppet is in it. */
  readonly directory: string;
}

/** A provider opened for the contract. */
export interface OpenedProvider {
  readonly provider: Provider;
  launch(wish: Wish): WorkerSpec;
  /** Launches that must fail, and the error to expect. */
  readonly unstartable: readonly [why: RegExp, launch: (wish: Wish) => WorkerSpec][];
  /** The provider of another server for the same host, after the earlier server has left. */
  again(): Promise<Provider>;
  end(): Promise<void>;
}

/** Resolves when the provider first reports the end of this worker. */
export const endOf = (provider: Provider, workerId: string): Promise<void> =>
  new Promise((resolve) => provider.onEnd((id) => void (id === workerId && resolve())));

/** The lines of a worker's log, as many as the query wants. */
export async function linesOf(provider: Provider, workerId: string, query: Partial<LogQuery> = {}): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  for await (const some of provider.logs(workerId, undefined, { signal: never, ...query })) lines.push(...some);
  return lines;
}

const never = new AbortController().signal;
const textsOf = (lines: readonly LogLine[]) => lines.map(({ text }) => text);

/** Follows a worker's log. */
function follower(provider: Provider, workerId: string, query: Partial<LogQuery> = {}) {
  const leaving = new AbortController();
  const lines = provider.logs(workerId, undefined, { signal: leaving.signal, follow: true, ...query });
  const reader = lines[Symbol.asyncIterator]();
  const heard: LogLine[] = [];
  return {
    leave() {
      leaving.abort();
      void reader.return?.();
    },
    /** Resolves with all texts so far once one equals `text`, or when the log ends. */
    async until(text?: string): Promise<string[]> {
      while (text === undefined || !textsOf(heard).includes(text)) {
        const { done, value } = await reader.next();
        if (done) break;
        heard.push(...value);
      }
      return textsOf(heard);
    },
  };
}

/** The promises of every provider about its workers. `open` makes a separate host. */
export function providerContract(name: string, open: () => Promise<OpenedProvider>): void {
  describe(name, () => {
    let stage: Stage;
    let opened: OpenedProvider;
    let provider: Provider;
    beforeEach(async () => {
      stage = new Stage();
      await stage.open();
      opened = await open();
      provider = opened.provider;
    });
    afterEach(async () => {
      await stage.close();
      await opened.end();
    });

    const id = "worker00000001";
    const wish = (workerId = id): Wish => ({
      workerId,
      directory: stage.directory,
      command: stage.command(workerId),
      env: { PATH: process.env.PATH ?? "", RUNPOD_POD_ID: workerId, GREETING: "hello $HOME" },
    });
    const launch = (workerId = id) => opened.launch(wish(workerId));
    const start = async (workerId = id) => {
      const handle = await provider.start(launch(workerId));
      return { handle, puppet: await stage.meet(workerId) };
    };

    it("starts a worker with its specified environment, and none of the server's variables", async () => {
      process.env.MILLRACE_TEST_OURS = "ours";
      const { handle, puppet } = await start();
      delete process.env.MILLRACE_TEST_OURS;
      const { env } = (await puppet.ask("where")) as { env: Record<string, string> };
      expect(env).toMatchObject(wish().env);
      expect(env).not.toHaveProperty("MILLRACE_TEST_OURS");
      expect(await provider.look(id)).toEqual({ state: "running", handle });
    });

    it("does not know a worker that was never started, and ignores calls about it", async () => {
      expect(await provider.look(id)).toMatchObject({ state: "unknown" });
      await provider.pause(id);
      await provider.resume(id);
      await provider.stop(id);
      await provider.kill(id, undefined);
      await provider.forget(id);
      expect(await provider.logTail(id)).toBe("");
    });

    it("starts a worker once, however often it is asked to", async () => {
      const { handle, puppet } = await start();
      expect(await provider.start(launch())).toEqual(handle);
      expect([await puppet.ask("hello"), stage.unmet(id)]).toEqual(["hello", 0]);
    });

    it("starts a worker once when it is asked twice at the same moment", async () => {
      const [one, two] = await Promise.all([provider.start(launch()), provider.start(launch())]);
      expect(two).toEqual(one);
    });

    it("says in one sentence why it cannot start a worker", async () => {
      expect(opened.unstartable.length).toBeGreaterThan(0);
      for (const [why, make] of opened.unstartable) {
        await expect(provider.start(make(wish()))).rejects.toThrow(why);
        expect(await provider.look(id)).toMatchObject({ state: "unknown" });
      }
      await start();
    });

    it.each([0, 3])("reports that a worker ended with code %i", async (code) => {
      const { puppet } = await start();
      const end = endOf(provider, id);
      puppet.do("exit", code);
      await end;
      expect(await provider.look(id)).toEqual({ state: "ended", exit: { code } });
    });

    it("reports by which signal a worker ended", async () => {
      const { puppet } = await start();
      const end = endOf(provider, id);
      puppet.do("die", "SIGSEGV");
      await end;
      expect(await provider.look(id)).toEqual({ state: "ended", exit: { signal: "SIGSEGV" } });
    });

    it("asks only the leader to stop", async () => {
      const { puppet } = await start();
      puppet.do("child", "child");
      const child = await stage.meet("child");
      puppet.do("stay");
      await puppet.ask("hello");
      await provider.stop(id);
      expect(await puppet.hear()).toBe("asked to stop");
      expect(await child.ask("hello")).toBe("hello");
    });

    it("ends a worker that ignores being asked to stop", async () => {
      await start();
      const end = endOf(provider, id);
      await provider.stop(id);
      await end;
      expect(await provider.look(id)).toEqual({ state: "ended", exit: { signal: "SIGTERM" } });
    });

    it("kills a worker with all its descendants", async () => {
      const { handle, puppet } = await start();
      puppet.do("stay");
      puppet.do("child", "child");
      const child = await stage.meet("child");
      child.do("stay");
      child.do("child", "grandchild");
      const grandchild = await stage.meet("grandchild");
      const end = endOf(provider, id);
      await provider.kill(id, handle);
      await Promise.all([puppet.ended, child.ended, grandchild.ended, end]);
      expect(await provider.look(id)).toEqual({ state: "ended", exit: { signal: "SIGKILL" } });
    });

    it("lets no child outlive its leader", async () => {
      const { puppet } = await start();
      puppet.do("child", "child");
      const child = await stage.meet("child");
      puppet.do("exit", 0);
      await child.ended;
    });

    it("leaves other workers alone", async () => {
      const { handle } = await start();
      const { puppet: other } = await start("worker00000002");
      const end = endOf(provider, id);
      await provider.kill(id, handle);
      await end;
      expect(await other.ask("hello")).toBe("hello");
      expect(await provider.look("worker00000002")).toMatchObject({ state: "running" });
    });

    it("keeps the last lines of a worker's output on either pipe, complete or not", async () => {
      const { puppet } = await start();
      await puppet.ask("say", Array.from({ length: 20 }, (_, n) => `line ${n}\n`).join(""));
      // An engine reads the two pipes independently.
      const reader = follower(provider, id);
      await reader.until("line 19");
      reader.leave();
      await puppet.ask("complain", "no such module\nand then");
      const end = endOf(provider, id);
      puppet.do("exit", 1);
      await end;
      const tail = (await provider.logTail(id)).split("\n");
      expect(tail.length).toBeLessThanOrEqual(6);
      expect(tail.slice(-3)).toEqual(["line 19", "no such module", "and then"]);
    });

    describe("of a worker's log", () => {
      /** Waits until this text is in the log, which takes a moment. */
      const kept = async (text: string, workerId = id) => {
        const reader = follower(provider, workerId);
        await reader.until(text);
        reader.leave();
      };
      const ended = async (puppet: Puppet) => {
        const end = endOf(provider, id);
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
        const lines = await linesOf(provider, id);
        expect(lines.map(({ stream, text }) => `${stream} ${text}`)).toEqual(
          [1, 2, 3].flatMap((n) => [`stdout out ${n}`, `stderr err ${n}`]),
        );
        expect(new Set(lines.map(({ workerId }) => workerId))).toEqual(new Set([id]));
        const times = lines.map(({ atUs }) => atUs);
        expect(times).toEqual([...new Set(times)].sort((one, other) => one - other));
        expect(times[0]).toBeGreaterThan(from);
        expect(times.at(-1)).toBeLessThan(Date.now() * 1_000 + 1_000_000);
      });

      it("returns the last lines, those since a time, and those of a job", async () => {
        const { puppet } = await start();
        const marked = (n: number) => JSON.stringify({ requestId: `job-${n % 2}`, message: `${n}`, level: "INFO" });
        await puppet.ask("say", Array.from({ length: 20 }, (_, n) => `${marked(n)}\n`).join(""));
        await kept(marked(19));
        const all = await linesOf(provider, id);
        expect(textsOf(all)).toEqual(Array.from({ length: 20 }, (_, n) => marked(n)));
        expect(await linesOf(provider, id, { tail: 3 })).toEqual(all.slice(-3));
        expect(await linesOf(provider, id, { tail: 0 })).toEqual([]);
        const sinceUs = (all[12] as LogLine).atUs;
        expect(await linesOf(provider, id, { sinceUs })).toEqual(all.slice(12));
        expect(await linesOf(provider, id, { sinceUs, tail: 2 })).toEqual(all.slice(-2));
        const mine = textsOf(await linesOf(provider, id, { jobId: "job-1", tail: 3 }));
        expect(mine).toEqual([marked(15), marked(17), marked(19)]);
      });

      it("follows it: existing lines, then new ones, each once, until the worker has ended", async () => {
        const { puppet } = await start();
        await puppet.ask("say", "a\nb\nc\n");
        await kept("c");
        const reader = follower(provider, id, { tail: 2 });
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
        const reader = follower(provider, id, { tail: 0 });
        const after = reader.until("after");
        const watcher = follower(provider, id);
        await watcher.until("before");
        watcher.leave();
        await puppet.ask("say", "after\n");
        expect(await after).toEqual(["after"]);
        reader.leave();
      });

      it("stops following on request, without effect on the worker", async () => {
        const { puppet } = await start();
        await puppet.ask("say", "a\n");
        const reader = follower(provider, id);
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
        const lines = await linesOf(provider, id);
        expect(textsOf(lines).sort()).toEqual(["one", "three", "two"]);
        await provider.forget(id);
        const said = (of: readonly LogLine[]) => of.map(({ stream, text }) => [stream, text]);
        expect(said(await linesOf(provider, id))).toEqual(said(lines));
        expect(await follower(provider, id).until()).toEqual(textsOf(lines));
        await start("worker00000002"); // another worker is still there to be found
        await provider.leave(60_000);
        expect(said(await linesOf(await opened.again(), id))).toEqual(said(lines));
      });

      it("has no lines of an unknown worker, followed or not", async () => {
        expect(await linesOf(provider, "unknown0000000")).toEqual([]);
        expect(await follower(provider, "unknown0000000").until()).toEqual([]);
      });

      it("shows bytes that are not text as replacement characters, and goes on", async () => {
        const { puppet } = await start();
        const bytes = Buffer.concat([Buffer.from("a"), Buffer.from([0xff, 0xc3]), Buffer.from("b\nwör\0ld\n")]);
        await puppet.ask("sayBytes", bytes.toString("base64"));
        await kept("wör\0ld");
        expect(textsOf(await linesOf(provider, id))).toEqual(["a\ufffd\ufffdb", "wör\0ld"]);
      });

      it("never shows the worker's own secret", async () => {
        const secret = "protocol-secret-0123";
        const made = launch();
        await provider.start({ ...made, env: { ...made.env, RUNPOD_AI_API_KEY: secret } });
        const puppet = await stage.meet(id);
        await puppet.ask("say", `calling ?token=${secret}&x\n`);
        const shown = "calling ?token=****&x";
        const reader = follower(provider, id, { tail: 1 });
        expect(await reader.until(shown)).toEqual([shown]);
        reader.leave();
        await ended(puppet);
        await provider.forget(id);
        expect(textsOf(await linesOf(provider, id))).toEqual([shown]);
      });

      it("hides the secrets of its environment from its first line on, also in the stored files", async () => {
        const made = launch();
        const hidden = [
          { variable: "HEADER", at: 7, length: 10 },
          { variable: "TOKEN", at: 0, length: 7 },
        ];
        const env = { ...made.env, HEADER: "Bearer of-header1", TOKEN: 'of-tok"' };
        await provider.start({ ...made, env, hidden });
        const puppet = await stage.meet(id);
        await puppet.ask("say", 'Bearer of-header1, of-tok", {"key":"of-tok\\""}\n');
        const shown = 'Bearer ****, ****, {"key":"****"}';
        const reader = follower(provider, id, { tail: 1 });
        expect(await reader.until(shown)).toEqual([shown]);
        reader.leave();
        expect(await provider.logTail(id)).toContain(shown);
        await ended(puppet);
        await provider.forget(id);
        expect(textsOf(await linesOf(provider, id))).toEqual([shown]);
      });

      it("hides the texts that it was told to hide, from then on, also in the stored files", async () => {
        const { puppet } = await start();
        await puppet.ask("say", "before s3cret\n");
        await kept("before s3cret");
        await provider.hide(id, "s3cret");
        await puppet.ask("say", 'a s3cret, {"key":"s3cret"}\n');
        const shown = 'a ****, {"key":"****"}';
        await kept(shown);
        expect(await provider.logTail(id)).toContain(shown);
        await ended(puppet);
        await provider.forget(id);
        expect(textsOf(await linesOf(provider, id)).at(-1)).toBe(shown);
        await provider.hide("unknown0000000", "s3cret");
      });

      it("keeps no more of a flood than its bound, even for a slow reader, and delays no other worker", async () => {
        const { puppet } = await start();
        await puppet.ask("say", "first\n");
        const slow = follower(provider, id);
        await slow.until("first");
        await puppet.ask("flood", 12 * 2 ** 20);
        await puppet.ask("say", "last\n");
        expect(await puppet.ask("hello")).toBe("hello");
        await ended(puppet);
        const bytes = textsOf(await linesOf(provider, id)).join("\n").length;
        expect(bytes).toBeLessThanOrEqual(2 * limits.logFileBytesMax);
        const heard = await slow.until();
        expect(heard.join("\n").length).toBeLessThanOrEqual(13 * 2 ** 20);
        await provider.forget(id);
        const keptBytes = textsOf(await linesOf(provider, id)).join("\n").length;
        expect(keptBytes).toBeLessThanOrEqual(2 * limits.logFileBytesMax);
        expect(keptBytes).toBeGreaterThan(0);
      });
    });

    it("forgets a worker that has ended, never one that runs", async () => {
      const { puppet } = await start();
      await provider.forget(id);
      expect(await provider.look(id)).toMatchObject({ state: "running" });
      const end = endOf(provider, id);
      puppet.do("exit", 0);
      await end;
      await provider.forget(id);
      expect(await provider.look(id)).toMatchObject({ state: "unknown" });
    });

    describe("paused", () => {
      /** A worker with a child, both sent a question while frozen. */
      const paused = async () => {
        const { handle, puppet } = await start();
        puppet.do("child", "child");
        const child = await stage.meet("child");
        await provider.pause(id);
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
        expect(await provider.look(id)).toEqual({ state: "running", handle });
        await provider.resume(id);
        expect([await puppet.hear(), await child.hear()]).toEqual(["hello", "hello"]);
      });

      it("again, or resumed again, a worker stays as after the first time", async () => {
        const { puppet } = await paused();
        await provider.pause(id);
        await another();
        expect(puppet.hasSpoken).toBe(false);
        await provider.resume(id);
        await provider.resume(id);
        expect(await puppet.hear()).toBe("hello");
        expect(await puppet.ask("hello")).toBe("hello");
      });

      it("a worker can be asked to stop, and does", async () => {
        await paused();
        const end = endOf(provider, id);
        await provider.stop(id);
        await end;
        expect(await provider.look(id)).toEqual({ state: "ended", exit: { signal: "SIGTERM" } });
      });

      it("a worker can be killed with its children", async () => {
        const { handle, puppet, child } = await paused();
        const end = endOf(provider, id);
        await provider.kill(id, handle);
        await Promise.all([puppet.ended, child.ended, end]);
        expect(await provider.look(id)).toEqual({ state: "ended", exit: { signal: "SIGKILL" } });
      });

      it("or resumed after its end, a worker still counts as ended", async () => {
        const { puppet } = await start();
        const end = endOf(provider, id);
        puppet.do("exit", 7);
        await end;
        await provider.pause(id);
        await provider.resume(id);
        expect(await provider.look(id)).toEqual({ state: "ended", exit: { code: 7 } });
      });

      it("a worker is found by the next server, which resumes it", async () => {
        const { handle, puppet } = await paused();
        await provider.leave(60_000);
        const next = await opened.again();
        expect(await next.look(id)).toEqual({ state: "running", handle });
        await next.resume(id);
        expect(await puppet.hear()).toBe("hello");
      });
    });

    describe("after the server that started it has left", () => {
      it("a worker lives on, is found again, and its end is reported to the next server", async () => {
        const { handle, puppet } = await start();
        await provider.leave(60_000);
        const next = await opened.again();
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
        await provider.leave(60_000);
        puppet.do("exit", 7);
        await puppet.ended;
        expect(await other.ask("hello")).toBe("hello");
        const next = await opened.again();
        let end = endOf(next, id);
        // An end may be reported for a worker that still runs: it only means that its state must be looked up.
        while ((await next.look(id)).state === "running") {
          await end;
          end = endOf(next, id);
        }
        expect(await next.look(id)).toEqual({ state: "ended", exit: { code: 7 } });
      });
    });
  });
}
