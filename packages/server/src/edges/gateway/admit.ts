import type { IncomingMessage } from "node:http";
import { type ApiKey, isVisible, mayChange, maySee, type Scope } from "../../domain/access/key.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { forbidden, Refusal } from "../../errors.js";
import { authenticate, knownKey, refuseWhileDraining } from "../../operations/access/authenticate.js";
import { unseenEndpoint } from "../../operations/access/visible.js";
import type { Needs } from "../../operations/needs.js";

type Access = Needs<"registry" | "vault" | "draining" | "clock">;

export interface GatewayRequest {
  readonly request: IncomingMessage;
  readonly endpointId: string;
  readonly isSocket: boolean;
}

/** A request that may pass: its endpoint, its key's owner, hash and scope, and whether it may pass with another scope. */
export interface Admitted {
  readonly endpoint: Endpoint;
  readonly ownerNo: number;
  readonly keyHash: string;
  readonly scope: Scope;
  mayStay(scope: Scope): boolean;
}

/**
 * An admitted request, if memory alone can tell; undefined leaves it to {@link admit} to find the
 * reason.
 */
export function admitAtOnce(needs: Access, asked: GatewayRequest): Admitted | undefined {
  const caller = needs.draining.aborted ? undefined : knownKey(needs, asked.request.headers.authorization);
  const endpoint = caller && needs.registry.endpoint(asked.endpointId);
  if (!caller || !isVisible(caller, endpoint) || !mayPass(caller.scope, asked)) return undefined;
  return endpoint.settings.type === "LB" ? admitted(endpoint, caller, asked) : undefined;
}

/** Admits a request or throws the refusal for the first check that fails: key, endpoint, permission. */
export async function admit(needs: Access, asked: GatewayRequest): Promise<Admitted> {
  refuseWhileDraining(needs.draining);
  const caller = await authenticate(needs, asked.request.headers.authorization);
  const id = asked.endpointId;
  const endpoint = await needs.registry.known("endpoint", id, () => needs.registry.endpoint(id));
  if (!isVisible(caller, endpoint)) throw unseenEndpoint(needs, caller, id);
  if (!mayPass(caller.scope, asked)) throw forbidden("This key may only read: it may send GET and HEAD.");
  if (endpoint.settings.type === "LB") return admitted(endpoint, caller, asked);
  const instead = `send its jobs to /v2/${endpoint.id}/run or /runsync.`;
  throw new Refusal("INVALID_STATE", `This endpoint is queue-based (type QB): ${instead}`);
}

/** Only the worker knows what a request does, so a read-only key is limited to the methods that only read. */
const mayPass = (scope: Scope, { request, endpointId, isSocket }: GatewayRequest): boolean =>
  mayChange(scope, endpointId) || (!isSocket && (request.method === "GET" || request.method === "HEAD"));

const admitted = (endpoint: Endpoint, { ownerNo, hash, scope }: ApiKey, asked: GatewayRequest): Admitted => ({
  endpoint,
  ownerNo,
  keyHash: hash,
  scope,
  mayStay: (present) => maySee(present, endpoint.id) && mayPass(present, asked),
});
