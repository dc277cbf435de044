/** Where a worker's HTTP server is reached; `host` is empty until it is known (a container that is not there yet). */
export interface WorkerAddress {
  readonly host: string;
  readonly port: number;
  /** Where it answers `GET /ping`. */
  readonly healthPort: number;
}

/** What an HTTP server in a container listens on, when nothing else was said. */
export const containerPortDefault = 80;

/** The ports that a user's own variables name. Throws one sentence where one is not a port. */
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

/** As it is stored: `host:port`, and `host:port/healthPort` where that is another. */
export const addressText = ({ host, port, healthPort }: WorkerAddress): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}${healthPort === port ? "" : `/${healthPort}`}`;

/** The address that was stored; undefined where there is none. */
export function readAddress(text: string | undefined): WorkerAddress | undefined {
  const [, six, host = "", port, healthPort] = /^(?:\[([^\]]+)\]|([^:/]*)):(\d+)(?:\/(\d+))?$/.exec(text ?? "") ?? [];
  if (port === undefined) return undefined;
  return { host: six ?? host, port: Number(port), healthPort: Number(healthPort ?? port) };
}

/** Whether an address means the machine it is used on. */
export const isLoopback = (host: string) => host === "::1" || host === "localhost" || host.startsWith("127.");

/**
 * Whether a server may dial a worker. What is on loopback or on the network between containers of one machine is another
 * worker, and perhaps another user's, when it is dialled from elsewhere: only `isRoutable` addresses are.
 */
export const mayDial = (address: WorkerAddress, isOwnHost: boolean, isContainer: boolean): boolean =>
  address.host !== "" && (isOwnHost || !(isContainer || isLoopback(address.host)));
