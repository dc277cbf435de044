import type { FastifyReply, FastifyRequest } from "fastify";
import { type ApiKey, isVisible, mayChange, maySee, type Scope } from "../../domain/access/key.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { forbidden, Refusal } from "../../errors.js";
import {
  authenticate,
  hasEnded,
  keyEndedMeanwhile,
  knownKey,
  refuseWhileDraining,
} from "../../operations/access/authenticate.js";
import type { Caller } from "../../operations/access/change-as.js";
import { unseenEndpoint } from "../../operations/access/visible.js";
import type { Needs, Parts } from "../../operations/needs.js";
import type { Grants, RatedOperation, Rates } from "../../rates.js";
import { endEarly, isGone } from "./replies/replies.js";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The operation that its requests count as in the rate limits. */
    readonly rated?: RatedOperation;
    /** Whether it changes anything: a read-only key may not. */
    readonly changes?: boolean;
    /** Whether load-balanced endpoints have this route, too. */
    readonly balanced?: boolean;
  }
  interface FastifyRequest {
    caller: Caller;
    endpoint: Endpoint;
  }
}

type Access = Needs<"registry" | "vault" | "draining" | "clock">;

export interface JobAccess extends Access, Needs<"tallies" | "heldCalls"> {
  /** Undefined while rate limits are off. */
  readonly rates: Rates | undefined;
  /** The shared counts of several servers; undefined if there is only one. */
  readonly grants?: Grants | undefined;
  readonly requestsPerWorker: number;
}

/** What routes about jobs need. */
export type JobParts = Parts & JobAccess;

/** Checks the key, the endpoint, the permission and the rate before every route of the queue API. */
export async function admitToJobs(needs: JobAccess, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  refuseWhileDraining(needs.draining);
  const caller = await authenticate(needs, request.headers.authorization);
  const { endpointId } = request.params as { endpointId: string };
  const endpoint = await needs.registry.known("endpoint", endpointId, () => needs.registry.endpoint(endpointId));
  if (!isVisible(caller, endpoint)) throw unseenEndpoint(needs, caller, endpointId);
  const { config } = request.routeOptions;
  const changes = config.changes || (request.query as { ttl?: string }).ttl !== undefined;
  if (changes && !mayChange(caller.scope, endpointId)) throw forbidden("This key may only read.");
  request.caller = caller;
  request.endpoint = endpoint;
  holdFor(needs, caller, reply, (scope) => maySee(scope, endpointId) && (!changes || mayChange(scope, endpointId)));
  if (config.rated && needs.rates) await limitRate(needs, needs.rates, config.rated, request, reply);
  if (endpoint.settings.type === "LB" && !config.balanced) throw notQueued(endpointId);
  if (request.headers["content-encoding"] && request.headers["content-encoding"] !== "identity") {
    throw new Refusal("UNSUPPORTED_ENCODING", "Send the body without a content encoding.");
  }
}

/** Ends the request when its key is revoked, expires, or is given a scope that does not allow it. */
export function holdFor(
  { heldCalls }: Needs<"heldCalls">,
  caller: ApiKey,
  reply: FastifyReply,
  mayStay: (scope: Scope) => boolean,
): void {
  const leave = heldCalls.hold(caller.hash, { mayStay, end: () => endEarly(reply, keyEndedMeanwhile()) });
  reply.raw.once("close", leave);
}

const notQueued = (id: string) =>
  new Refusal(
    "INVALID_STATE",
    `This endpoint is load-balancing (type LB) and has no queue: send requests to /lb/${id}/ and the paths its workers have.`,
  );

interface Admitted {
  readonly endpoint: Endpoint;
  readonly scope: Scope;
  /** Throws if the key has ended, or may no longer make the request. */
  readonly check: () => void;
  readonly release?: () => void;
}

/**
 * Like {@link admitToJobs}, from memory alone. Undefined leaves the request to that function, which finds the reason.
 */
export function admitAtOnce(
  needs: JobAccess,
  authorization: string | undefined,
  endpointId: string,
  operation: RatedOperation,
  changes: boolean,
): Admitted | undefined {
  const caller = needs.draining.aborted ? undefined : knownKey(needs, authorization);
  const endpoint = needs.registry.endpoint(endpointId);
  if (!caller || !isVisible(caller, endpoint) || (changes && !mayChange(caller.scope, endpointId))) return undefined;
  if (endpoint.settings.type === "LB") return undefined;
  /** Its body may take long to arrive. */
  const check = () => {
    const present = needs.registry.key(caller.hash);
    const mayStay = present && !hasEnded(needs, present) && (!changes || mayChange(present.scope, endpointId));
    if (!mayStay) throw keyEndedMeanwhile();
  };
  const { scope } = caller;
  if (!needs.rates) return { endpoint, scope, check };
  if (needs.grants?.isShared) return undefined;
  const admission = needs.rates.admit(`${caller.ownerNo}/${endpoint.no}`, operation, 0, needs.clock.now());
  return admission.ok ? { endpoint, scope, check, release: admission.release } : undefined;
}

async function limitRate(
  needs: JobAccess,
  rates: Rates,
  operation: RatedOperation,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  const { endpoint, caller } = request;
  const who = `${caller.ownerNo}/${endpoint.no}`;
  let admission = rates.admit(who, operation, 0, needs.clock.now());
  if (!admission.ok) {
    const held = await needs.tallies.holdings(endpoint.no);
    const running = [...held.values()].filter((count) => count > 0).length;
    admission = rates.admit(who, operation, running * needs.requestsPerWorker, needs.clock.now());
  }
  if (admission.ok && needs.grants) {
    const { limit, release } = admission;
    const asked = needs.grants.admit(`${who}/${operation}`, limit, needs.clock.now());
    const isGranted = await asked.catch((error) => {
      release();
      throw error;
    });
    if (!isGranted) {
      release();
      admission = { ok: false, limit, remaining: 0, retryAfterSeconds: 1 };
    }
  }
  if (admission.ok) {
    if (isGone(reply)) admission.release();
    else reply.raw.once("close", admission.release);
    return;
  }
  reply.header("ratelimit-limit", String(admission.limit));
  reply.header("ratelimit-remaining", String(admission.remaining));
  reply.header("ratelimit-reset", String(admission.retryAfterSeconds));
  const { limit, concurrentMax, retryAfterSeconds } = admission;
  const sentence =
    concurrentMax === undefined
      ? `Too many requests to this operation: at most ${limit} in 10 s; wait and try again.`
      : `Too many requests to this operation at the same time: at most ${concurrentMax} may wait for their answers; try again when one of them is answered.`;
  throw new Refusal("RATE_LIMITED", sentence, { retryAfterSeconds });
}
