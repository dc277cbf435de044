import { connect, createServer, type Socket } from "node:net";

/**
 * A TCP proxy in front of a database. It can break connections while the database goes on with what it has received.
 */
export interface TestProxy {
  readonly port: number;
  /** Breaks the next connection that sends matching bytes, when the answer to them arrives. */
  cutAnswerTo(isThose: (bytes: Buffer) => boolean): void;
  /** Breaks every connection. */
  cutAll(): void;
  /** Stops all present connections without closing them, like a pulled cable. */
  freezeAll(): void;
  /** The number of connections broken so far. */
  cuts(): number;
  end(): Promise<void>;
}

export async function startProxy(serverPort: number): Promise<TestProxy> {
  let isThose: ((bytes: Buffer) => boolean) | undefined;
  let cuts = 0;
  const sockets = new Set<Socket>();
  const nears = new Set<Socket>();
  const frozen = new WeakSet<Socket>();
  const cut = (near: Socket) => {
    cuts++;
    near.resetAndDestroy(); // the database continues with the statement, and finds out later
  };

  const proxy = createServer((near) => {
    const far = connect(serverPort, "127.0.0.1");
    let isDoomed = false;
    nears.add(near);
    near.on("close", () => nears.delete(near));
    near.on("data", (bytes) => {
      if (frozen.has(near)) return;
      far.write(bytes);
      if (!isThose?.(bytes)) return;
      isDoomed = true;
      isThose = undefined;
    });
    far.on("data", (bytes) => {
      if (frozen.has(near)) return;
      if (isDoomed) cut(near);
      else near.write(bytes);
    });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on("error", () => one.destroy());
      one.on("close", () => {
        sockets.delete(one);
        other.end();
      });
    }
  });
  await new Promise<void>((listening) => proxy.listen(0, "127.0.0.1", listening));
  return {
    port: (proxy.address() as { port: number }).port,
    cutAnswerTo: (these) => {
      isThose = these;
    },
    cutAll: () => {
      for (const near of [...nears]) cut(near);
    },
    freezeAll: () => {
      for (const near of nears) frozen.add(near);
    },
    cuts: () => cuts,
    end: () =>
      new Promise((closed) => {
        proxy.close(() => closed());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
