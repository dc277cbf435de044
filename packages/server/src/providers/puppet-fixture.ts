import { spawn } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The program of workers in these tests: it connects to the test and does what it is told, line by line. */
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
  sayBytes: (base64) => process.stdout.write(Buffer.from(base64, "base64"), () => tell("said")),
  flood: (bytes) => {
    const line = "x".repeat(1_000);
    const lines = Array.from({ length: bytes / 1_000 }, (_, n) => n + line + "\\n");
    process.stdout.write(lines.join(""), () => tell("said"));
  },
  complain: (text) => process.stderr.write(text, () => tell("said")),
  where: () => tell({ cwd: process.cwd(), env: process.env }),
  child: (child) => void spawn(process.execPath, [__filename, socket, child], { stdio: "inherit" }),
  stray: (child) => spawn(process.execPath, [__filename, socket, child], { detached: true, stdio: "inherit" }).unref(),
  hello: () => tell("hello"),
};
require("node:readline").createInterface({ input: line }).on("line", (text) => {
  const [act, value] = JSON.parse(text);
  acts[act](value);
});
`;

/**
 * A process that runs the puppet program, seen through its connection to the test: when the connection ends, so has the
 * process.
 */
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

  /** The next message from the puppet. */
  async hear(): Promise<unknown> {
    if (this.#heard.length > 0) return this.#heard.shift();
    return await new Promise((resolve) => this.#listeners.push(resolve));
  }

  /** Whether the puppet has sent a message that was not read yet. */
  get hasSpoken(): boolean {
    return this.#heard.length > 0;
  }

  async ask(act: string, value?: unknown): Promise<unknown> {
    this.do(act, value);
    return await this.hear();
  }
}

/** The server that puppets connect to. */
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
    const lines = createInterface({ input: socket }).on("error", () => {}); // the close reports it
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

  /** The next puppet that connects under this name. */
  async meet(name: string): Promise<Puppet> {
    const there = this.#arrived.get(name)?.shift();
    if (there) return there;
    return await new Promise((resolve) => {
      this.#awaited.set(name, [...(this.#awaited.get(name) ?? []), resolve]);
    });
  }

  /** How many puppets have connected under this name without being met. */
  unmet(name: string): number {
    return this.#arrived.get(name)?.length ?? 0;
  }

  /** A puppet unknown to every provider, in its own process group. */
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
