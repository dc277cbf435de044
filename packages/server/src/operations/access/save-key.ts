import { changed, updated } from "../../domain/access/audit.js";
import { type ApiKey, isVisible, type JobAccess, type Scope } from "../../domain/access/key.js";
import type { User } from "../../domain/access/user.js";
import { endpointNotFound, forbidden, invalid, Refusal, unauthorized } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import { checkFields, nameRule, timeIn } from "../fields.js";
import type { Needs } from "../needs.js";
import { iso } from "../show-resources.js";
import { withinQuota } from "../usage/quotas.js";
import { type Caller, changeAccessAs } from "./change-as.js";
import { newApiKey, prefixOf } from "./secrets.js";
import { seesMore } from "./visible.js";

type Saving = Needs<"registry" | "ids" | "vault" | "clock" | "bell">;

/** A key's scope as callers send and see it. */
export type ShownScope =
  | "all"
  | "read"
  | { readonly endpoints: readonly { readonly id: string; readonly access: JobAccess }[] };

/** What a caller may send of a key: absent keeps; a null `expiresAt` means that it never expires. */
export interface KeyInput {
  readonly name?: string;
  readonly scope?: ShownScope;
  /** RFC 3339. */
  readonly expiresAt?: string | null;
}

/** The id by which each key may read itself. */
const itself = "self";

/** The key that a caller asks for: itself, or one that it may see. */
export function shownKey(needs: Needs<"registry">, caller: ApiKey, id: string): ApiKey {
  return id === itself ? caller : ownKey(needs, caller, id);
}

/** The caller's own key or, for an admin, any user's key. Another user's key is refused exactly like an unknown key. */
function ownKey({ registry }: Needs<"registry">, caller: ApiKey, id: string): ApiKey {
  seesMore(caller, "users and keys");
  const key = registry.keyById(id);
  if (!key || (key.ownerNo !== caller.ownerNo && !caller.isAdmin)) {
    throw new Refusal("NOT_FOUND", `There is no API key '${id.slice(0, 80)}' for this key.`);
  }
  return key;
}

/** The caller's keys or, for an admin, the keys of any user. */
export function keysOf({ registry }: Needs<"registry">, caller: ApiKey, userId: string | undefined): ApiKey[] {
  seesMore(caller, "users and keys");
  const owner = userId === undefined ? registry.user(caller.ownerNo) : userFor({ registry }, caller, userId);
  return registry.keys().filter(({ ownerNo }) => ownerNo === owner?.no);
}

/** Makes a key, for another user too if the caller is an admin. Returns it with its text, which is never shown again. */
export function createKey(
  needs: Saving,
  asking: Caller,
  { name, scope, expiresAt, userId }: KeyInput & { readonly userId?: string },
): Promise<{ key: ApiKey; text: string }> {
  return changeAccessAs(needs, asking, async (caller) => {
    const owner = userId === undefined ? needs.registry.user(caller.ownerNo) : userFor(needs, caller, userId);
    if (!owner) throw unauthorized();
    mayKeep(needs, caller, owner);
    const now = needs.clock.now();
    const count = needs.registry.keys().filter((key) => key.ownerNo === owner.no).length;
    if (count >= limits.keysPerUserMax) {
      const words = `A user may have ${limits.keysPerUserMax} API keys, expired ones included: delete one first.`;
      throw new Refusal("IN_USE", words);
    }
    withinQuota(needs, owner.no, "keys", { has: count });
    const text = newApiKey(needs.ids);
    const made = {
      id: needs.ids.resource(),
      name: checkedName(name),
      hash: needs.vault.hash(text),
      prefix: prefixOf(text),
      ownerNo: owner.no,
      isBootstrap: false,
      scope: scopeOf(needs, owner, scope ?? "all"),
      createdAt: now,
      expiresAt: toCome(expiry(caller, expiresAt), now),
      old: undefined,
    };
    auditing.note(
      changed("key.create", made.id, undefined, { ...recorded(made), userId: owner.id, prefix: made.prefix }),
    );
    return { key: await needs.registry.createKey(made), text };
  });
}

/** Changes a key's name, scope or expiry; the bootstrap key keeps its scope and never expires. */
export function updateKey(needs: Saving, asking: Caller, id: string, input: KeyInput): Promise<ApiKey> {
  return changeAccessAs(needs, asking, async (caller) => {
    const key = ownKey(needs, caller, id);
    const owner = ownerOf(needs, key);
    mayKeep(needs, caller, owner);
    if (key.isBootstrap && (input.scope !== undefined || (input.expiresAt ?? null) !== null))
      throw new Refusal("INVALID_STATE", "The bootstrap key has every right and never expires; rotate it instead.");
    const next = {
      ...key,
      ...(input.name === undefined ? {} : { name: checkedName(input.name) }),
      ...(input.scope === undefined ? {} : { scope: scopeOf(needs, owner, input.scope) }),
      ...(input.expiresAt === undefined ? {} : { expiresAt: expiry(caller, input.expiresAt) }),
    };
    checkLifetime(caller, next);
    auditing.note(updated("key.update", id, recorded(key), recorded(next)));
    const saved = await needs.registry.saveKey(next);
    needs.bell.ring("calls");
    return saved;
  });
}

/**
 * Gives a key a new text, which is never shown again. The old text works for another `overlapSeconds`; a text from
 * before that one stops working at once.
 */
export function rotateKey(
  needs: Saving & Needs<"bootstrapKey">,
  asking: Caller,
  id: string,
  overlapSeconds: number = limits.keyOverlapMsDefault / 1_000,
): Promise<{ key: ApiKey; text: string }> {
  return changeAccessAs(needs, asking, async (caller) => {
    const key = ownKey(needs, caller, id);
    mayKeep(needs, caller, ownerOf(needs, key));
    checkLifetime(caller, key);
    const text = newApiKey(needs.ids);
    const until = needs.clock.now() + overlapSeconds * 1_000;
    const old = overlapSeconds === 0 ? undefined : { hash: key.hash, prefix: key.prefix, until };
    let saved = key;
    const store = async () => {
      auditing.note(
        changed("key.rotate", id, { prefix: key.prefix }, { prefix: prefixOf(text), oldUntil: old && iso(old.until) }),
      );
      saved = await needs.registry.saveKey({ ...key, hash: needs.vault.hash(text), prefix: prefixOf(text), old });
    };
    await (key.isBootstrap ? needs.bootstrapKey.replace(text, store) : store());
    needs.bell.ring("calls");
    return { key: saved, text };
  });
}

/** Revokes a key: it is unknown from now on, and requests held for it end. */
export function deleteKey(needs: Saving, asking: Caller, id: string): Promise<void> {
  return changeAccessAs(needs, asking, async (caller) => {
    const key = ownKey(needs, caller, id);
    mayKeep(needs, caller, ownerOf(needs, key));
    if (key.isBootstrap) throw new Refusal("INVALID_STATE", "The bootstrap key cannot be deleted; rotate it instead.");
    auditing.note(changed("key.delete", id, { ...recorded(key), prefix: key.prefix }, undefined));
    await needs.registry.removeKey(key);
    needs.bell.ring("calls");
  });
}

/** What the audit log shows of a key. */
const recorded = ({ name, scope, expiresAt }: Pick<ApiKey, "name" | "scope" | "expiresAt">) => ({
  name,
  scope: shownScope(scope),
  expiresAt: expiresAt === undefined ? undefined : iso(expiresAt),
});

/** Keys as callers see them, with their last use. */
export async function showKeys(needs: Needs<"registry">, keys: readonly ApiKey[]) {
  const uses = await needs.registry.lastUses(keys);
  return keys.map((key) => {
    const { id, name, prefix, createdAt, expiresAt, old, isBootstrap } = key;
    const used = uses.get(key.no);
    return {
      id,
      name,
      prefix,
      userId: ownerOf(needs, key).id,
      scope: shownScope(key.scope),
      ...(isBootstrap ? { isBootstrap } : {}),
      ...(createdAt === undefined ? {} : { createdAt: iso(createdAt) }),
      ...(expiresAt === undefined ? {} : { expiresAt: iso(expiresAt) }),
      ...(used === undefined ? {} : { lastUsedAt: iso(used) }),
      ...(old === undefined ? {} : { oldPrefix: old.prefix, oldUntil: iso(old.until) }),
    };
  });
}

/** A user by id. Only an admin may name another user. */
export function userFor({ registry }: Needs<"registry">, caller: ApiKey, id: string): User {
  const user = registry.users().find((each) => each.id === id);
  if (!user || (user.no !== caller.ownerNo && !caller.isAdmin))
    throw new Refusal("NOT_FOUND", `There is no user '${id.slice(0, 80)}' for this key.`);
  return user;
}

/** Only the first admin's own keys may make keys for it: the first admin's processes run with the server's rights. */
export function mayKeep({ registry }: Needs<"registry">, caller: ApiKey, owner: User): void {
  if (registry.isFirstAdmin(owner.no) && owner.no !== caller.ownerNo)
    throw forbidden("Only a key of the first admin may change the first admin's keys.");
}

function ownerOf({ registry }: Needs<"registry">, { ownerNo }: ApiKey): User {
  const owner = registry.user(ownerNo);
  if (!owner) throw unauthorized();
  return owner;
}

function checkedName(name: string | undefined): string {
  checkFields({ name: nameRule }, { name });
  if (!name) throw invalid("An API key needs 'name': 1 to 191 visible characters.");
  return name;
}

/** Whether what ends at `at`, or never, lives longer than a key that ends at `expiresAt`, or never. */
const outlives = (expiresAt: number | undefined, at: number | undefined): expiresAt is number =>
  expiresAt !== undefined && (at === undefined || at > expiresAt);

/** When a key ends. An expiring key cannot make or change a key to outlive it. */
function expiry({ expiresAt }: ApiKey, given: string | null | undefined): number | undefined {
  const at = given === undefined || given === null ? undefined : timeIn("expiresAt", given);
  if (!outlives(expiresAt, at)) return at;
  throw forbidden(`This key expires at ${iso(expiresAt)}: give an 'expiresAt' that is no later.`);
}

/** Refuses the end of a new key if it is over: whoever gives it means another time. */
function toCome(expiresAt: number | undefined, now: number): number | undefined {
  if (expiresAt === undefined || expiresAt > now) return expiresAt;
  throw invalid(`'expiresAt' is over: ${iso(expiresAt)}. Give a time to come, or null for a key that never expires.`);
}

/** Refuses an expiring key a change of a key that lives longer: the new text, or scope, would extend its own rights. */
function checkLifetime({ expiresAt }: ApiKey, key: ApiKey): void {
  if (!outlives(expiresAt, key.expiresAt)) return;
  throw forbidden(`This key expires at ${iso(expiresAt)}: it may not change a key that lives longer.`);
}

const shownScope = (scope: Scope): ShownScope => {
  if (scope.kind === "everything") return "all";
  if (scope.kind === "readOnly") return "read";
  return { endpoints: Object.entries(scope.access).map(([id, access]) => ({ id, access })) };
};

function scopeOf({ registry }: Needs<"registry">, owner: User, given: ShownScope): Scope {
  if (given === "all") return { kind: "everything" };
  if (given === "read") return { kind: "readOnly" };
  if (given.endpoints.length === 0) throw invalid("'scope.endpoints' must name one endpoint at least.");
  if (given.endpoints.length > limits.endpointsPerKeyMax)
    throw invalid(`'scope.endpoints' may have ${limits.endpointsPerKeyMax} entries at most.`);
  const all = { ownerNo: owner.no, scope: { kind: "everything" } } as const;
  for (const { id } of given.endpoints) if (!isVisible(all, registry.endpoint(id))) throw endpointNotFound(id);
  return { kind: "endpoints", access: Object.fromEntries(given.endpoints.map(({ id, access }) => [id, access])) };
}
