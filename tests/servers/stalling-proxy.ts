import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A statement that was sent, but has not reached the database. */
export interface Held {
  /** Lets it pass, and resolves when the database has answered it. */
  release(): Promise<void>;
}

/** A TCP proxy in front of a database, whose connections can stall without being closed. */
export interface StallingProxy {
  readonly port: number;
  /** How many connections have begun to listen for notifications. */
  listeners(): number;
  /** Stops all data on the connections that listen now, in both directions. */
  silence(): void;
  /** The same for every connection that is open now. */
  silenceAll(): void;
  /** Holds the next statement with matching text on its way to the database, and resolves when it is held. */
  holdNext(text: RegExp): Promise<Held>;
  end(): void;
}

/** Waits for one statement, and then keeps everything that follows on its connection. */
interface Trap {
  readonly text: RegExp;
  readonly spring: (held: Held) => void;
}

/** Forwards everything to a database on this machine, until told otherwise. */
export async function startStallingProxy(databasePort: number): Promise<StallingProxy> {
  const sockets = new Set<Socket>();
  const clients = new Set<Socket>();
  const listening = new Set<Socket>();
  const silent = new Set<Socket>();
  const kept = new Map<Socket, Buffer[]>();
  let listeners = 0;
  let trap: Trap | undefined;

  const hold = (near: Socket, far: Socket, { spring }: Trap) => {
    trap = undefined;
    kept.set(near, []);
    spring({
      release: () =>
        new Promise((answered) => {
          far.once("data", () => answered());
          for (const bytes of kept.get(near) ?? []) far.write(bytes);
          kept.delete(near);
        }),
    });
  };
  const proxy = createServer((near) => {
    const far = connect(databasePort, "127.0.0.1");
    clients.add(near);
    near.on("data", (bytes: Buffer) => {
      const text = bytes.toString("latin1");
      if (text.includes("LISTEN ")) {
        listening.add(near);
        listeners++;
      }
      if (trap?.text.test(text)) hold(near, far, trap);
      if (kept.has(near)) kept.get(near)?.push(bytes);
      else if (!silent.has(near)) far.write(bytes);
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
    silenceAll() {
      for (const near of clients) silent.add(near);
    },
    holdNext: (text) =>
      new Promise((spring) => {
        trap = { text, spring };
      }),
    end() {
      proxy.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
