import { isIP } from "node:net";
import { Refusal } from "../../../errors.js";

/** The service's host names besides those of loopback; undefined if any name will do. */
type HostNames = readonly string[] | undefined;

/** Whether a request with this Host header is meant for us. */
export type HostJudge = (host: string | undefined) => boolean;

/**
 * Judges the host name of requests. A web page whose name was rebound to this machine's address sends its own name, and
 * must not read anything here. IP addresses and loopback's names cannot be rebound, so they pass. `domain`: the domain
 * of load-balanced endpoints.
 */
export function hostJudge(names: HostNames, domain: string | undefined): HostJudge {
  if (names === undefined) return () => true;
  const known = new Set(names);
  let last: string | undefined; // clients repeat themselves
  return (host) => {
    if (host === undefined || host === last) return true;
    const name = host.toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
    const isOurs =
      name === "" ||
      known.has(name) ||
      name === "localhost" ||
      name.endsWith(".localhost") ||
      isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0 ||
      (domain !== undefined && (name === domain || name.endsWith(`.${domain}`)));
    if (isOurs) last = host;
    return isOurs;
  };
}

export const wrongHost = (host: string) =>
  new Refusal(
    "INVALID_INPUT",
    `This server does not answer to the name '${host.slice(0, 80)}': add it to MILLRACE_HOST_NAMES if it should.`,
  );
