import type { Policy } from "@millrace/api";
import { exits, Failure } from "./exit.js";

/** The options of a command that say how jobs are run. */
export interface PolicyOptions {
  readonly executionTimeout?: string;
  readonly ttl?: string;
  readonly lowPriority?: true;
}

/** The policy that options ask for; undefined if they ask for none. */
export function policyOf({ executionTimeout, ttl, lowPriority }: PolicyOptions): Policy | undefined {
  const policy = {
    ...(executionTimeout === undefined ? {} : { executionTimeout: millis("--execution-timeout", executionTimeout, 5) }),
    ...(ttl === undefined ? {} : { ttl: millis("--ttl", ttl, 10) }),
    ...(lowPriority && { lowPriority }),
  };
  return Object.keys(policy).length > 0 ? policy : undefined;
}

/** Milliseconds that the server accepts (contract: Job submission body): at most a week. */
function millis(option: string, given: string, leastSeconds: number): number {
  const [least, most] = [leastSeconds * 1_000, 604_800_000];
  const value = Number(given);
  if (/^\d+$/.test(given) && value >= least && value <= most) return value;
  throw new Failure(exits.usage, `${option} must be whole milliseconds, from ${least} to ${most}.`, `${option} 60000`);
}
