import { connect, type Socket } from "node:net";
import { expect } from "vitest";
import type { TestServer } from "../../harness.js";
import { memoryMib } from "./bystander.js";

/** A connection that writes what the test tells it to, and reads only on demand. */
export class Hostile {
  readonly socket: Socket;
  readonly #key: string;
  text = "";
  constructor({ port, key }: Pick<TestServer, "port" | "key">) {
    this.#key = key;
    this.socket = connect(port, "127.0.0.1");
    this.socket.on("error", () => {}); // a refusal may come with a reset
    this.socket.on("data", (data) => {
      if (this.text.length < 4_096) this.text += data.toString("latin1");
    });
  }
  head(method: string, path: string, headers: Record<string, string | number> = {}): this {
    const all = { host: "127.0.0.1", authorization: `Bearer ${this.#key}`, ...headers };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    this.socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
    return this;
  }
  get status(): number {
    return Number(/^HTTP\/1\.1 (\d{3})/.exec(this.text)?.[1] ?? 0);
  }
  end(): void {
    this.socket.destroy();
  }
}

/** Opens `count` connections, and closes them however the test ends. */
export async function crowdOf(
  server: Pick<TestServer, "port" | "key">,
  count: number,
  act: (members: Hostile[]) => Promise<void>,
): Promise<void> {
  const members = Array.from({ length: count }, () => new Hostile(server));
  try {
    await act(members);
  } finally {
    for (const member of members) member.end();
  }
}

/** Samples the server's memory during an attack, and expects its peak to be at most `mostMib` higher than before. */
export async function expectMemory(
  server: Pick<TestServer, "pid">,
  name: string,
  mostMib: number,
  attack: () => Promise<void>,
): Promise<void> {
  const before = memoryMib(server.pid);
  let highest = before;
  const watch = setInterval(() => {
    highest = Math.max(highest, memoryMib(server.pid));
  }, 25);
  try {
    await attack();
  } finally {
    clearInterval(watch);
    const sizes = [before, highest, memoryMib(server.pid)].map((size) => size.toFixed(0));
    console.log(`${name}: the server's memory was ${sizes[0]} MiB before, at most ${sizes[1]}, then ${sizes[2]}`);
  }
  expect(highest - before).toBeLessThan(mostMib);
}
