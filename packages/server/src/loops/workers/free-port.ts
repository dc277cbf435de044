import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { limits } from "../../limits/index.js";

/** The port range that the system uses for outgoing connections. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** The range that this system uses; if unknown, the widest range in use. */
export function outgoingPorts(file = "/proc/sys/net/ipv4/ip_local_port_range"): PortRange {
  const usual = { first: 32_768, last: 65_535 };
  try {
    const [first, last] = readFileSync(file, "utf8").trim().split(/\s+/).map(Number);
    return first && last ? { first, last } : usual;
  } catch {
    return usual;
  }
}

/**
 * A port that nobody listens on and that is not in `told`. If there is room, it lies below the range for outgoing
 * connections: a connection could take a port of that range before the worker listens.
 */
export async function freePort(told: ReadonlySet<number | undefined>, outgoing = outgoingPorts()): Promise<number> {
  const room = outgoing.first - limits.workerPortFirst;
  for (let draws = 1; ; draws++) {
    const drawn = (await listened(0)) as number;
    const isBelow = room >= limits.workerPortsMin && draws <= limits.workerPortDrawsMax;
    const port = isBelow ? await listened(limits.workerPortFirst + (drawn % room)) : drawn;
    if (port !== undefined && !told.has(port)) return port;
  }
}

/**
 * Listens for a moment on a port; 0 lets the system pick one. Undefined if another process listens there.
 */
const listened = (asked: number): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const probe = createServer().once("error", (error: NodeJS.ErrnoException) =>
      asked > 0 && error.code === "EADDRINUSE" ? resolve(undefined) : reject(error),
    );
    probe.listen(asked, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
