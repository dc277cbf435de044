import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";

/** A TCP proxy before a database whose listening connections can fall silent, though nobody closes them. */
export interface SilentProxy {
  readonly port: number;
  /** How many connections have begun to listen. */
  listeners(): number;
  /** From now on nothing more passes on the connections that listen now, either way. */
  silence(): void;
  end(): void;
}

export async function startSilentProxy(databasePort: number): Promise<SilentProxy> {
  const sockets = new Set<Socket>();
  const listening = new Set<Socket>();
  const silent = new Set<Socket>();
  let listeners = 0;
  const proxy = createServer((near) => {
    const far = connect(databasePort, "127.0.0.1");
    near.on("data", (bytes) => {
      if (bytes.includes("LISTEN ")) {
        listening.add(near);
        listeners++;
      }
      if (!silent.has(near)) far.write(bytes);
    });
    far.on("data", (bytes) => {
      if (!silent.has(near)) near.write(bytes);
    });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on("error", () => one.destroy());
      one.on("close", () => {
        sockets.delete(one);
        if (!silent.has(near)) other.destroy();
      });
    }
  });
  await new Promise<void>((done) => proxy.listen(0, "127.0.0.1", done));
  return {
    port: (proxy.address() as AddressInfo).port,
    listeners: () => listeners,
    silence() {
      for (const near of listening) silent.add(near);
    },
    end() {
      proxy.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
