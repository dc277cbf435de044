/** Another server that has a healthy worker for some endpoints: their requests may be passed on to it. */
export interface OtherServer {
  readonly serverNo: number;
  readonly host: string;
  readonly port: number;
  /** The endpoints' numbers. */
  readonly open: ReadonlySet<number>;
}

/** The other servers as they last reported, except servers that have just failed a request. */
export class OtherServers {
  #servers: readonly OtherServer[] = [];
  /** Until when a server, or one endpoint at it, is skipped. */
  readonly #avoided = new Map<string, number>();
  #turn = 0;

  hear(servers: readonly OtherServer[], now: number): void {
    this.#servers = servers;
    for (const [key, untilAt] of this.#avoided) if (untilAt <= now) this.#avoided.delete(key);
  }

  /** A server that has a worker for the endpoint; if there are several, they take turns. */
  find(endpointNo: number, now: number): OtherServer | undefined {
    const isAvoided = (key: string) => (this.#avoided.get(key) ?? 0) > now;
    const able = this.#servers.filter(
      ({ serverNo, open }) =>
        open.has(endpointNo) && !isAvoided(keyOf(serverNo)) && !isAvoided(keyOf(serverNo, endpointNo)),
    );
    return able[this.#turn++ % able.length];
  }

  /** Skips a server for a while, for one endpoint or for all. */
  avoid(serverNo: number, untilAt: number, endpointNo?: number): void {
    this.#avoided.set(keyOf(serverNo, endpointNo), untilAt);
  }
}

const keyOf = (serverNo: number, endpointNo?: number): string => `${serverNo} ${endpointNo ?? "all"}`;
