/** A host as the scaler sees it. */
export interface HostView {
  readonly no: number;
  /** A country's code; undefined fits every place. */
  readonly location: string | undefined;
  /** How many workers it has. */
  readonly workers: number;
}

/** Whether a host is where an endpoint wants its workers (`locations`: codes, or empty for anywhere). */
export const isThere = ({ location }: Pick<HostView, "location">, locations: string): boolean =>
  location === undefined || locations === "" || locations.split(",").includes(location);

/** The host for the next worker: of those in the right place the one with the fewest. */
export function chooseHost(hosts: readonly HostView[], locations: string): number | undefined {
  const fitting = hosts.filter((host) => isThere(host, locations));
  return fitting.sort((a, b) => a.workers - b.workers || a.no - b.no)[0]?.no;
}
