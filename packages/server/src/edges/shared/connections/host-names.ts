import { isIP } from "node:net";
import { Refusal } from "../../../errors.js";

/** The names under which the service is reached beside loopback's own; undefined where any name will do. */
type HostNames = readonly string[] | undefined;

/** Whether a request with this Host header is meant for us. */
export type HostJudge = (host: string | undefined) => boolean;

/**
 * Judges the name a request is addressed to. A browser's page whose name was rebound to this machine sends that name, and
 * must read nothing here. An address is never such a name, and neither is loopback's own. `domain` is load balancing's.
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
