import { connect, createServer, type Socket } from "node:net";

/** A TCP proxy between two parties that harms their connections as networks do. */
export interface TcpProxy {
  readonly port: number;
  /** Delays every piece by this time, in both directions. */
  delay(ms: number): void;
  /** Forwards nothing, without any sign to either side, until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Resets connections on both sides at once; data on its way is lost. Returns how many. */
  drop(isChosen?: () => boolean): number;
  /** Sends the server the end of its client's data; the other direction stays open. Returns how many. */
  halfClose(isChosen?: () => boolean): number;
  /** Breaks the next connection on which the server sends matching bytes, and drops them: a lost answer. */
  cutNext(isThose: (bytes: string) => boolean): void;
  cuts(): number;
  end(): Promise<void>;
}

/** Listens on `port` (0: a free one), and forwards everything to `farPort`. */
export async function startProxy(farPort: number, port = 0): Promise<TcpProxy> {
  const weather = new Weather();
  const links = new Set<Link>();
  const proxy = createServer({ allowHalfOpen: true }, (near) => {
    const link = new Link(near, farPort, weather, () => links.delete(link));
    links.add(link);
  });
  await new Promise<void>((done) => proxy.listen(port, "127.0.0.1", done));
  const address = proxy.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const each = (isChosen: () => boolean, act: (link: Link) => void) => {
    const chosen = [...links].filter(() => isChosen());
    for (const link of chosen) act(link);
    return chosen.length;
  };
  return {
    port: address.port,
    delay: (ms) => {
      weather.delayMs = ms;
    },
    freeze: () => weather.freeze(),
    thaw: () => weather.thaw(),
    drop: (isChosen = () => true) => each(isChosen, (link) => link.drop()),
    halfClose: (isChosen = () => true) => each(isChosen, (link) => link.halfClose()),
    cutNext: (these) => {
      weather.isCut = these;
    },
    cuts: () => weather.cuts,
    async end() {
      weather.thaw();
      const closed = new Promise((done) => proxy.close(done));
      for (const link of links) link.drop();
      await closed;
    },
  };
}

/** The current state of all connections of a proxy. */
class Weather {
  delayMs = 0;
  isCut: ((bytes: string) => boolean) | undefined;
  cuts = 0;
  #thawed: Promise<void> | undefined;
  #thaw = () => {};

  /** Undefined while data may pass. */
  get frozen(): Promise<void> | undefined {
    return this.#thawed;
  }

  freeze(): void {
    this.#thawed ??= new Promise((done) => {
      this.#thaw = done;
    });
  }

  thaw(): void {
    this.#thawed = undefined;
    this.#thaw();
  }
}

/** One connection: a client's side and the server's. */
class Link {
  readonly #near: Socket;
  readonly #far: Socket;

  constructor(near: Socket, farPort: number, weather: Weather, onClose: () => void) {
    this.#near = near;
    this.#far = connect({ port: farPort, host: "127.0.0.1", allowHalfOpen: true });
    const isLost = (bytes: Buffer) => {
      if (!weather.isCut?.(bytes.toString("latin1"))) return false;
      weather.isCut = undefined;
      weather.cuts += 1;
      near.resetAndDestroy(); // the server's side stays open until it is closed normally
      return true;
    };
    forward(near, this.#far, weather, () => false);
    forward(this.#far, near, weather, isLost);
    for (const [one, other] of [
      [near, this.#far],
      [this.#far, near],
    ] as const) {
      one.on("error", () => one.destroy());
      one.on("close", (hadError) => {
        if (hadError) other.destroy();
        else other.end();
        if (near.destroyed && this.#far.destroyed) onClose();
      });
    }
  }

  drop(): void {
    this.#near.resetAndDestroy();
    this.#far.resetAndDestroy();
  }

  halfClose(): void {
    this.#far.end();
  }
}

/** One direction, in order: each piece waits for its delay, and for the end of a freeze. */
function forward(from: Socket, to: Socket, weather: Weather, isLost: (bytes: Buffer) => boolean): void {
  let waiting = 0;
  let last = Promise.resolve();
  const pass = (act: () => void) => {
    if (waiting === 0 && weather.delayMs === 0 && weather.frozen === undefined) return act();
    waiting += 1;
    const dueAt = performance.now() + weather.delayMs;
    last = last.then(async () => {
      await weather.frozen;
      const leftMs = dueAt - performance.now();
      if (leftMs > 0) await new Promise((done) => setTimeout(done, leftMs));
      waiting -= 1;
      act();
    });
  };
  from.on("data", (bytes) =>
    pass(() => {
      if (to.writable && !isLost(bytes)) to.write(bytes);
    }),
  );
  from.on("end", () => pass(() => to.end()));
}
