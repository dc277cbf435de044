import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, statSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { programFile } from "../../host/programs.js";
import { markName } from "./sweep.js";

export interface KeeperOptions {
  readonly dataDir: string;
  readonly logsDir: string;
  readonly awayMs: number;
}

/**
 * The path of a unix socket has at most 107 bytes, so a deep data directory gets a short path in the temporary
 * directory.
 */
function socketPathOf(dataDir: string): string {
  const near = join(dataDir, "keeper.sock");
  if (Buffer.byteLength(near) <= 100) return near;
  const name = createHash("sha256").update(dataDir).digest("hex").slice(0, 16);
  const dir = join(tmpdir(), `millrace-${userInfo().uid}-${name}`);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  chmodSync(dir, 0o700);
  return join(dir, "keeper.sock");
}

/**
 * Identifies this directory on the machine, whatever path leads to it: in a container, the same path may be another
 * one.
 */
function markOf(dataDir: string): string {
  const { dev, ino } = statSync(dataDir, { bigint: true });
  return `${dev}-${ino}`;
}

/** The keeper went away before it replied: it may or may not have done the call. */
export class KeeperGone extends Error {}

/** The server's connection to the keeper, which is found again after a restart, and started if there is none. */
export class KeeperClient {
  readonly #options: KeeperOptions;
  readonly #path: string;
  readonly #calls = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  readonly #onEnd: (workerId: string) => void;
  readonly #onLost: () => void;
  #socket: Promise<Socket> | undefined;
  #lastNo = 0;
  #closed = false;

  constructor(options: KeeperOptions, on: { end: (workerId: string) => void; lost: () => void }) {
    this.#options = options;
    this.#path = socketPathOf(options.dataDir);
    this.#onEnd = on.end;
    this.#onLost = on.lost;
  }

  /** Connects to the keeper; starts one if there is none. */
  async open(): Promise<void> {
    await this.#connected();
  }

  async call<T>(verb: string, id: string, more: object = {}): Promise<T> {
    if (this.#closed) throw new Error("the keeper of local workers was left");
    const socket = await this.#connected();
    const n = ++this.#lastNo;
    return new Promise<T>((resolve, reject) => {
      this.#calls.set(n, { resolve: resolve as (value: unknown) => void, reject });
      socket.write(`${JSON.stringify({ n, verb, id, ...more })}\n`);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    const socket = await this.#socket?.catch(() => undefined);
    socket?.end();
  }

  #connected(): Promise<Socket> {
    this.#socket ??= this.#dial()
      .catch(() => this.#launch())
      .then((socket) => this.#listen(socket));
    this.#socket.catch(() => {
      this.#socket = undefined;
    });
    return this.#socket;
  }

  /** Connects and waits for a reply: a keeper that is being killed still accepts connections, but does not reply. */
  #dial(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.#path);
      const fail = () => reject(new Error("the keeper of local workers does not answer"));
      socket.once("error", fail).once("close", fail);
      socket.once("connect", () => socket.write(`${JSON.stringify({ n: 0, verb: "look", id: "" })}\n`));
      socket.once("readable", () => {
        if (socket.readableLength === 0) return fail();
        socket.off("error", fail).off("close", fail);
        resolve(socket);
      });
    });
  }

  /** Starts a keeper in its own session with a clean environment, and connects once it listens. */
  #launch(): Promise<Socket> {
    const { dataDir, logsDir, awayMs } = this.#options;
    const entry = programFile("#keeper");
    const child = spawn(process.execPath, [entry, this.#path, logsDir, String(awayMs)], {
      cwd: dataDir,
      detached: true,
      env: { PATH: process.env.PATH, [markName]: markOf(dataDir) },
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    return new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`the keeper of local workers ended with ${code}`)));
      child.once("message", () => {
        child.removeAllListeners("exit");
        child.disconnect();
        child.unref();
        this.#dial().then(resolve, reject);
      });
    });
  }

  #listen(socket: Socket): Socket {
    socket.on("error", () => socket.destroy());
    socket.once("close", () => {
      this.#socket = undefined;
      for (const call of this.#calls.values()) call.reject(new KeeperGone("the keeper of local workers is gone"));
      this.#calls.clear();
      if (!this.#closed) this.#onLost();
    });
    // readline re-emits the socket's errors; the close event suffices
    createInterface({ input: socket })
      .on("line", (line) => this.#heard(JSON.parse(line)))
      .on("error", () => {});
    return socket;
  }

  #heard(message: { n?: number; result?: unknown; error?: string; event?: string; id?: string }): void {
    if (message.event === "end") this.#onEnd(message.id ?? "");
    const call = this.#calls.get(message.n ?? 0);
    this.#calls.delete(message.n ?? 0);
    if (message.error === undefined) call?.resolve(message.result);
    else call?.reject(new Error(message.error));
  }
}
