/** The target of a load-balanced request. */
export interface Target {
  readonly endpointId: string;
  /** The path for the worker: the rest of the URL, byte for byte. */
  readonly path: string;
  /** What was removed from the path; empty if the host names the endpoint. */
  readonly prefix: string;
}

/**
 * Parses `/lb/{endpoint_id}/{path}` and, if `domain` is set, the host `{endpoint_id}.{domain}`; undefined for anything
 * else.
 */
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

/** The endpoint's label in a host name, in any case and with any port. */
function labelOf(host: string, domain: string): string | undefined {
  const name = host.toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
  if (!name.endsWith(`.${domain}`)) return undefined;
  const label = name.slice(0, -domain.length - 1);
  return /^[a-z0-9]{14}$/.test(label) ? label : undefined;
}
