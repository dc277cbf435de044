import type { Endpoint } from "../endpoints/endpoint.js";

/** What a key may do: everything, only read, or jobs of named endpoints. */
export type Scope =
  | { readonly kind: "everything" }
  | { readonly kind: "readOnly" }
  | { readonly kind: "endpoints"; readonly endpointIds: readonly string[] };

export interface ApiKey {
  readonly no: number;
  /** SHA-256 of the key, hex: the key itself is shown once and never stored. */
  readonly hash: string;
  readonly ownerNo: number;
  readonly isAdmin: boolean;
  readonly scope: Scope;
  readonly prefix: string;
}

/** Whether a key with this scope may change what it owns (`endpointId`: jobs of that endpoint only). */
export function mayChange(scope: Scope, endpointId?: string): boolean {
  if (scope.kind === "everything") return true;
  return scope.kind === "endpoints" && endpointId !== undefined && scope.endpointIds.includes(endpointId);
}

/** Whether a key with this scope sees this endpoint at all. */
export const maySee = (scope: Scope, endpointId: string): boolean =>
  scope.kind !== "endpoints" || scope.endpointIds.includes(endpointId);

/** Whether a key may see this endpoint: same owner, within the key's scope, and not deleted. */
export const isVisible = (caller: ApiKey, endpoint: Endpoint | undefined): endpoint is Endpoint =>
  endpoint !== undefined &&
  endpoint.deletedAt === undefined &&
  endpoint.ownerNo === caller.ownerNo &&
  maySee(caller.scope, endpoint.id);
