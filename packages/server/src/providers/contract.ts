import { spawn } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Launch, Provider } from "../provider.js";

/** What the contract asks to be started; the provider's own test adds what only its kind has. */
export interface Wish {
  readonly workerId: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** A directory that the worker must see under this very path: its puppet is there. */
  readonly directory: string;
}

/** A provider as the contract opens it. */
export interface OpenedProvider {
  readonly provider: Provider;
  launch(wish: Wish): Launch;
  /** What it cannot start, and the sentence that says why. */
  readonly unstartable: readonly [why: RegExp, launch: (wish: Wish) => Launch][];
  /** Another server's provider over the same host, after the one before has left. */
  again(): Promise<Provider>;
  end(): Promise<void>;
}

/** What a worker of these tests runs: it calls the test, and does what it is told, line by line. */
const puppetSource = `
const { connect } = require("node:net");
const { spawn } = require("node:child_process");
const [socket, name] = process.argv.slice(2);
const line = connect(socket, () => line.write(JSON.stringify({ name, pid: process.pid, ppid: process.ppid }) + "\\n"));
line.on("error", () => process.exit(99));
const tell = (value) => line.write(JSON.stringify(value) + "\\n");
const acts = {
  exit: (code) => process.exit(code),
  die: (signal) => process.kill(process.pid, signal),
  stay: () => process.on("SIGTERM", () => tell("asked to stop")),
  say: (text) => process.stdout.write(text, () => tell("said")),
  complain: (text) => process.stderr.write(text, () => tell("said")),
  where: () => tell({ cwd: process.cwd(), env: process.env }),
  child: (child) => void spawn(process.execPath, [__filename, socket, child], { stdio: "inherit" }),
  hello: () => tell("hello"),
};
require("node:readline").createInterface({ input: line }).on("line", (text) => {
  const [act, value] = JSON.parse(text);
  acts[act](value);
});
`;

/** A process that runs the puppet, seen through its line to the test: the line's end is the process's. */
export class Puppet {
  readonly pid: number;
  readonly ppid: number;
  readonly ended: Promise<void>;
  readonly #socket: Socket;
  readonly #heard: unknown[] = [];
  readonly #listeners: ((value: unknown) => void)[] = [];

  constructor(socket: Socket, lines: NodeJS.EventEmitter, { pid, ppid }: { pid: number; ppid: number }) {
    this.#socket = socket;
    this.pid = pid;
    this.ppid = ppid;
    this.ended = new Promise((resolve) => socket.once("close", () => resolve()));
    lines.on("line", (line: string) => {
      const listener = this.#listeners.shift();
      if (listener) listener(JSON.parse(line));
      else this.#heard.push(JSON.parse(line));
    });
  }

  do(act: string, value?: unknown): void {
    this.#socket.write(`${JSON.stringify([act, value ?? null])}\n`);
  }

  /** The next thing it tells. */
  async hear(): Promise<unknown> {
    if (this.#heard.length > 0) return this.#heard.shift();
    return await new Promise((resolve) => this.#listeners.push(resolve));
  }

  async ask(act: string, value?: unknown): Promise<unknown> {
    this.do(act, value);
    return await this.hear();
  }
}

/** Where puppets call the test. */
export class Stage {
  readonly directory = realpathSync(mkdtempSync(join(tmpdir(), "millrace-stage-")));
  readonly #script = join(this.directory, "puppet.cjs");
  readonly #socket = join(this.directory, "stage.sock");
  readonly #arrived = new Map<string, Puppet[]>();
  readonly #awaited = new Map<string, ((puppet: Puppet) => void)[]>();
  readonly #sockets = new Set<Socket>();
  readonly #server: Server = createServer((socket) => this.#meet(socket));

  async open(): Promise<void> {
    writeFileSync(this.#script, puppetSource);
    await new Promise<void>((done) => this.#server.listen(this.#socket, done));
  }

  #meet(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    const lines = createInterface({ input: socket });
    lines.once("line", (text) => {
      const { name, ...ids } = JSON.parse(text);
      const puppet = new Puppet(socket, lines, ids);
      const waiting = this.#awaited.get(name)?.shift();
      if (waiting) waiting(puppet);
      else this.#arrived.set(name, [...(this.#arrived.get(name) ?? []), puppet]);
    });
  }

  command(name: string): string[] {
    return [process.execPath, this.#script, this.#socket, name];
  }

  /** The next puppet that calls by this name. */
  async meet(name: string): Promise<Puppet> {
    const there = this.#arrived.get(name)?.shift();
    if (there) return there;
    return await new Promise((resolve) => {
      this.#awaited.set(name, [...(this.#awaited.get(name) ?? []), resolve]);
    });
  }

  /** How many have called by this name and were not met. */
  unmet(name: string): number {
    return this.#arrived.get(name)?.length ?? 0;
  }

  /** A puppet that no provider knows: in a group of its own. */
  async stranger(name: string, env: Record<string, string> = {}): Promise<Puppet> {
    const [file = "", ...args] = this.command(name);
    spawn(file, args, { detached: true, stdio: "ignore", env: { ...env, PATH: process.env.PATH ?? "" } }).unref();
    return await this.meet(name);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((done) => this.#server.close(done));
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Resolves with the first end of this worker that a provider tells. */
export const endOf = (provider: Provider, workerId: string): Promise<void> =>
  new Promise((resolve) => provider.onEnd((id) => void (id === workerId && resolve())));

/** What every provider promises of the workers it runs. `open` makes a host of its own. */
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

    it("starts a worker with what it was told, and nothing of ours", async () => {
      process.env.MILLRACE_TEST_OURS = "ours";
      const { handle, puppet } = await start();
      delete process.env.MILLRACE_TEST_OURS;
      const { env } = (await puppet.ask("where")) as { env: Record<string, string> };
      expect(env).toMatchObject(wish().env);
      expect(env).not.toHaveProperty("MILLRACE_TEST_OURS");
      expect(await provider.look(id)).toEqual({ state: "running", handle });
    });

    it("knows nothing of a worker that was never started, and minds no word about it", async () => {
      expect(await provider.look(id)).toEqual({ state: "unknown" });
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
        expect(await provider.look(id)).toEqual({ state: "unknown" });
      }
      await start();
    });

    it.each([0, 3])("tells that a worker ended with code %i", async (code) => {
      const { puppet } = await start();
      const end = endOf(provider, id);
      puppet.do("exit", code);
      await end;
      expect(await provider.look(id)).toEqual({ state: "ended", exit: { code } });
    });

    it("tells by what signal a worker ended", async () => {
      const { puppet } = await start();
      const end = endOf(provider, id);
      puppet.do("die", "SIGSEGV");
      await end;
      expect(await provider.look(id)).toEqual({ state: "ended", exit: { signal: "SIGSEGV" } });
    });

    it("asks the leader to stop, and it alone", async () => {
      const { puppet } = await start();
      puppet.do("child", "child");
      const child = await stage.meet("child");
      puppet.do("stay");
      await puppet.ask("hello");
      await provider.stop(id);
      expect(await puppet.hear()).toBe("asked to stop");
      expect(await child.ask("hello")).toBe("hello");
    });

    it("ends a worker that does not mind being stopped", async () => {
      await start();
      const end = endOf(provider, id);
      await provider.stop(id);
      await end;
      expect(await provider.look(id)).toEqual({ state: "ended", exit: { signal: "SIGTERM" } });
    });

    it("kills a worker with its children and theirs", async () => {
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

    it("keeps the last lines of what a worker said on either pipe, whole or not", async () => {
      const { puppet } = await start();
      await puppet.ask("say", Array.from({ length: 20 }, (_, n) => `line ${n}\n`).join(""));
      await puppet.ask("complain", "no such module\nand then");
      const end = endOf(provider, id);
      puppet.do("exit", 1);
      await end;
      const tail = (await provider.logTail(id)).split("\n");
      expect(tail.length).toBeLessThanOrEqual(6);
      expect(tail.slice(-3)).toEqual(["line 19", "no such module", "and then"]);
    });

    it("forgets a worker that has ended, never one that runs", async () => {
      const { puppet } = await start();
      await provider.forget(id);
      expect(await provider.look(id)).toMatchObject({ state: "running" });
      const end = endOf(provider, id);
      puppet.do("exit", 0);
      await end;
      await provider.forget(id);
      expect(await provider.look(id)).toEqual({ state: "unknown" });
    });

    describe("after the server that started it has left", () => {
      it("a worker lives on, is found again, and its end is told to the next server", async () => {
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
        const end = endOf(next, id);
        if ((await next.look(id)).state === "running") await end;
        expect(await next.look(id)).toEqual({ state: "ended", exit: { code: 7 } });
      });
    });
  });
}
