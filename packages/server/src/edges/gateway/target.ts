/** What a load-balanced request is for. */
export interface Target {
  readonly endpointId: string;
  /** What its worker is asked for: the rest of the address, byte for byte. */
  readonly path: string;
  /** What was taken off the path; empty where the host names the endpoint. */
  readonly prefix: string;
}

/** Reads `/lb/{endpoint_id}/{path}` and, under `domain`, the host `{endpoint_id}.{domain}`; undefined for everything else. */
export function targetOf(url: string, host: string | undefined, domain: string | undefined): Target | undefined {
  if (domain !== undefined && host !== undefined) {
    const endpointId = labelOf(host, domain);
    if (endpointId !== undefined) return { endpointId, path: url, prefix: "" };
  }
  if (!url.startsWith("/lb/")) return undefined;
  const [slashAt, queryAt] = [url.indexOf("/", 4), url.indexOf("?", 4)];
  const endAt = slashAt === -1 || (queryAt !== -1 && queryAt < slashAt) ? queryAt : slashAt;
  const endpointId = endAt === -1 ? url.slice(4) : url.slice(4, endAt);
  const rest = endAt === -1 ? "" : url.slice(endAt);
  return { endpointId, path: rest.startsWith("/") ? rest : `/${rest}`, prefix: `/lb/${endpointId}` };
}

/** The endpoint's label of a host, in any case, on any port. */
function labelOf(host: string, domain: string): string | undefined {
  const name = host.toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
  if (!name.endsWith(`.${domain}`)) return undefined;
  const label = name.slice(0, -domain.length - 1);
  return /^[a-z0-9]{14}$/.test(label) ? label : undefined;
}
