import type { Endpoint } from "../endpoints/endpoint.js";

/** What a key may do with an endpoint's jobs: only read them, or everything. */
export type JobAccess = "read" | "run";

/** What a key may do: everything, only read, or jobs of chosen endpoints. */
export type Scope =
  | { readonly kind: "everything" }
  | { readonly kind: "readOnly" }
  | { readonly kind: "endpoints"; readonly access: Readonly<Record<string, JobAccess>> };

/** The secret that a key had before it was rotated, while it still works. */
export interface OldSecret {
  readonly hash: string;
  readonly prefix: string;
  /** When it stops working, in ms since 1970. */
  readonly until: number;
}

export interface ApiKey {
  readonly no: number;
  readonly id: string;
  readonly name: string;
  /** SHA-256 of the key, hex: the key itself is shown once and never stored. */
  readonly hash: string;
  readonly prefix: string;
  readonly ownerNo: number;
  readonly isAdmin: boolean;
  /** Whether it is the key of the first start, whose owner alone may run local processes. */
  readonly isBootstrap: boolean;
  readonly scope: Scope;
  readonly createdAt: number | undefined;
  readonly expiresAt: number | undefined;
  readonly old: OldSecret | undefined;
}

/** Whether a key has expired. */
export const isExpired = ({ expiresAt }: ApiKey, now: number): boolean => expiresAt !== undefined && expiresAt <= now;

/** Whether a key with this scope may change what it owns (`endpointId`: jobs of that endpoint only). */
export function mayChange(scope: Scope, endpointId?: string): boolean {
  if (scope.kind === "everything") return true;
  return scope.kind === "endpoints" && endpointId !== undefined && accessOf(scope.access, endpointId) === "run";
}

/** Whether a key with this scope sees this endpoint at all. */
export const maySee = (scope: Scope, endpointId: string): boolean =>
  scope.kind !== "endpoints" || accessOf(scope.access, endpointId) !== undefined;

const accessOf = (access: Readonly<Record<string, JobAccess>>, endpointId: string): JobAccess | undefined =>
  Object.hasOwn(access, endpointId) ? access[endpointId] : undefined;

/** Whether a key may see this endpoint: same owner, within the key's scope, and not deleted. */
export const isVisible = (
  caller: Pick<ApiKey, "ownerNo" | "scope">,
  endpoint: Endpoint | undefined,
): endpoint is Endpoint =>
  endpoint !== undefined &&
  endpoint.deletedAt === undefined &&
  endpoint.ownerNo === caller.ownerNo &&
  maySee(caller.scope, endpoint.id);
