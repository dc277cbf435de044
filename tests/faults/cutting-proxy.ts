import { connect, createServer, type Socket } from "node:net";

/** A TCP proxy that can lose an answer: its sender believes it written, its receiver sees a broken connection. */
export interface CuttingProxy {
  /** Breaks the next connection on which the server sends such bytes, and drops them. */
  cutNext(isThose: (bytes: string) => boolean): void;
  cuts(): number;
  end(): void;
}

/** Listens on `port`, and passes everything on to `serverPort`. */
export async function startCuttingProxy(port: number, serverPort: number): Promise<CuttingProxy> {
  let isThose: ((bytes: string) => boolean) | undefined;
  let cuts = 0;
  const sockets = new Set<Socket>();
  const proxy = createServer((near) => {
    const far = connect(serverPort, "127.0.0.1");
    near.on("data", (bytes) => far.write(bytes));
    far.on("data", (bytes) => {
      if (!isThose?.(bytes.toString("latin1"))) return near.write(bytes);
      isThose = undefined;
      cuts += 1;
      return near.resetAndDestroy(); // the server's side stays open until it is closed in peace
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
  await new Promise<void>((done) => proxy.listen(port, "127.0.0.1", done));
  return {
    cutNext: (these) => {
      isThose = these;
    },
    cuts: () => cuts,
    end() {
      proxy.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
