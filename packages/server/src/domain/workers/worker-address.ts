import type { WorkerNetwork } from "./worker.js";

/** Where a worker's HTTP server is reached. `host` is empty until known: in a network of its own, until it runs. */
export interface WorkerAddress {
  readonly host: string;
  readonly port: number;
  /** Where it answers `GET /ping`. */
  readonly healthPort: number;
}

/** What leads to workers cannot be used now; that says nothing about the workers. */
export class RouteAway extends Error {
  readonly syscall = "connect";
  /** For operators; the message may be shown to users. */
  readonly detail: string;

  constructor(message: string, detail: string) {
    super(message);
    this.detail = detail;
  }
}

/** The port that a worker's HTTP server uses unless told otherwise, where no other worker can have it. */
export const ownPortDefault = 80;

/** The ports set by a user's own variables. Throws one sentence if one is not a port. */
export function namedPorts(own: Readonly<Record<string, string>>): { port?: number; healthPort?: number } {
  const port = portOf(own, "PORT");
  const healthPort = portOf(own, "PORT_HEALTH");
  return { ...(port === undefined ? {} : { port }), ...(healthPort === undefined ? {} : { healthPort }) };
}

function portOf(own: Readonly<Record<string, string>>, name: string): number | undefined {
  const text = own[name];
  if (text === undefined || text === "") return undefined;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) throw new Error(`its variable ${name} is not a port from 1 to 65535`);
  return port;
}

/** The stored form: `host:port`, or `host:port/healthPort` if the health port differs. */
export const addressText = ({ host, port, healthPort }: WorkerAddress): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}${healthPort === port ? "" : `/${healthPort}`}`;

/** Parses a stored address; undefined if there is none. */
export function readAddress(text: string | undefined): WorkerAddress | undefined {
  const [, six, host = "", port, healthPort] = /^(?:\[([^\]]+)\]|([^:/]*)):(\d+)(?:\/(\d+))?$/.exec(text ?? "") ?? [];
  if (port === undefined) return undefined;
  return { host: six ?? host, port: Number(port), healthPort: Number(healthPort ?? port) };
}

/** Whether an address means the machine that uses it. */
export const isLoopback = (host: string) => host === "::1" || host === "localhost" || host.startsWith("127.");

/**
 * Whether a server may dial a worker. An address on loopback or on a network of one machine, dialled from another
 * machine, would reach another worker, perhaps another user's: such addresses are dialled only on the worker's own
 * host.
 */
export function mayDial(address: WorkerAddress, isOwnHost: boolean, network: WorkerNetwork | undefined): boolean {
  if (address.host === "" || isOwnHost) return address.host !== "";
  return network?.reachedFrom !== "host" && !isLoopback(address.host);
}
