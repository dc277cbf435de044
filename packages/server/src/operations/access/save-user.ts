import { changed, updated } from "../../domain/access/audit.js";
import type { ApiKey } from "../../domain/access/key.js";
import type { User } from "../../domain/access/user.js";
import { forbidden, invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import { checkFields, nameRule } from "../fields.js";
import type { Needs, Parts } from "../needs.js";
import { iso } from "../show-resources.js";
import { bankAll } from "../usage/meter-usage.js";
import { checkTerms, mergeTerms, showTerms, type TermsInput } from "../usage/terms.js";
import { type Caller, changeAccessAs } from "./change-as.js";
import { checkUsedByOthers, deleteAll, describe, owns, transfer } from "./estate.js";
import { userFor } from "./save-key.js";
import { newWebhookSecret } from "./secrets.js";
import { seesMore } from "./visible.js";

type Saving = Needs<"registry" | "ids" | "vault" | "clock">;

/** What a caller may send of a user: absent keeps. */
export interface UserInput extends TermsInput {
  readonly name?: string;
  readonly role?: "admin" | "member";
}

/** What happens to a deleted user's resources: they go to another user, or are deleted too. */
export interface Estate {
  readonly transferTo?: string;
  readonly deleteResources?: boolean;
}

/** All users for an admin; a member sees itself. */
export function usersFor({ registry }: Needs<"registry">, caller: ApiKey): User[] {
  seesMore(caller, "users and keys");
  return registry.users().filter(({ no }) => caller.isAdmin || no === caller.ownerNo);
}

/** A user whom the caller may see. Anyone else is refused exactly like an unknown one. */
export function ownUser(needs: Needs<"registry">, caller: ApiKey, id: string): User {
  seesMore(caller, "users and keys");
  return userFor(needs, caller, id);
}

/** The user with this id, if the caller may change it. Only the first admin's own keys may change the first admin. */
function changeable(needs: Needs<"registry">, caller: ApiKey, id: string): User {
  const user = ownUser(needs, caller, id);
  if (needs.registry.isFirstAdmin(user.no) && user.no !== caller.ownerNo)
    throw forbidden("Only a key of the first admin may change the first admin.");
  return user;
}

/** Makes a user. Returns it with the secret that signs its webhooks. */
export function createUser(
  needs: Saving,
  asking: Caller,
  { name, role = "member", ...terms }: UserInput,
): Promise<{ user: User; webhookSecret: string }> {
  return changeAccessAs(needs, asking, async (caller) => {
    mayAdminister(caller);
    checkTerms(terms);
    if (needs.registry.users().length >= limits.usersMax)
      throw new Refusal("IN_USE", `There may be ${limits.usersMax} users: delete one first.`);
    const webhookSecret = newWebhookSecret(needs.ids);
    const made = {
      id: `user_${needs.ids.resource()}`,
      name: freeName(needs, name, undefined),
      isAdmin: role === "admin",
      webhookSecret: needs.vault.seal(webhookSecret),
      oldWebhookSecret: undefined,
      pubKey: "",
      terms: mergeTerms({}, terms),
      createdAt: needs.clock.now(),
      deletedAt: undefined,
    };
    auditing.note(changed("user.create", made.id, undefined, recorded(made)));
    return { user: await needs.registry.createUser(made), webhookSecret };
  });
}

/** Changes a user's name or role; the first admin stays an admin. */
export function updateUser(
  needs: Saving & Needs<"bell" | "usage">,
  asking: Caller,
  id: string,
  { name, role, ...terms }: UserInput,
): Promise<User> {
  return changeAccessAs(needs, asking, async (caller) => {
    mayAdminister(caller);
    checkTerms(terms);
    const user = changeable(needs, caller, id);
    if (role === "member" && needs.registry.isFirstAdmin(user.no))
      throw new Refusal("INVALID_STATE", "The first admin stays an admin: the bootstrap key is its own.");
    const next = {
      ...user,
      ...(name === undefined ? {} : { name: freeName(needs, name, user) }),
      ...(role === undefined ? {} : { isAdmin: role === "admin" }),
      terms: mergeTerms(user.terms, terms),
    };
    if (next.terms.serverlessDiscount !== user.terms.serverlessDiscount) await bankAll(needs);
    auditing.note(updated("user.update", id, recorded(user), recorded(next)));
    const saved = await needs.registry.saveUser(next);
    needs.bell.ring("demand"); // what it may run may have changed
    return saved;
  });
}

/** Gives a user a new webhook secret; the old secret also signs for one more day. */
export function rotateWebhookSecret(needs: Saving, asking: Caller, id: string): Promise<string> {
  return changeAccessAs(needs, asking, async (caller) => {
    const user = changeable(needs, caller, id);
    const secret = newWebhookSecret(needs.ids);
    const until = needs.clock.now() + limits.webhookSecretOverlapMs;
    auditing.note({ action: "user.rotateWebhookSecret", resource: id });
    await needs.registry.saveUser({
      ...user,
      webhookSecret: needs.vault.seal(secret),
      oldWebhookSecret: { sealed: user.webhookSecret, until },
    });
    return secret;
  });
}

/**
 * Deletes a user with its keys. Refuses if the user owns resources, unless the caller says what happens to them. If the
 * deletion is interrupted, finished steps stay done: keys go first and the user last, and the same request resumes it.
 */
export async function deleteUser(needs: Parts, asking: Caller, id: string, estate: Estate): Promise<void> {
  if (estate.transferTo !== undefined && estate.deleteResources)
    throw invalid("Give either 'transferTo' or 'deleteResources', not both.");
  if (estate.deleteResources) {
    const user = await changeAccessAs(needs, asking, async (caller) => {
      const user = deletable(needs, caller, id);
      checkUsedByOthers(needs, user);
      await removeKeys(needs, user); // so that nothing more is created with them
      return user;
    });
    await deleteAll(needs, asking, user);
  }
  await changeAccessAs(needs, asking, async (caller) => {
    const current = deletable(needs, caller, id);
    if (estate.transferTo !== undefined) await transfer(needs, caller, current, estate.transferTo);
    const owned = describe(await owns(needs, current));
    if (owned !== "") {
      const remedy = "add ?transferTo={userId} to give them to another user, or ?deleteResources=true to delete them";
      throw new Refusal("IN_USE", `The user '${current.id}' owns ${owned}: ${remedy}.`);
    }
    for (const key of keysOfUser(needs, current)) noteKeyEnd(key);
    auditing.note(changed("user.delete", id, recorded(current), undefined));
    await needs.registry.removeUser(current, needs.clock.now());
    needs.bell.ring("calls");
  });
}

/** The user with this id, if the caller may delete it: an admin may delete every user but the first admin. */
function deletable(needs: Needs<"registry">, caller: ApiKey, id: string): User {
  mayAdminister(caller);
  const user = ownUser(needs, caller, id);
  if (needs.registry.isFirstAdmin(user.no))
    throw new Refusal("INVALID_STATE", "The first admin cannot be deleted: the bootstrap key is its own.");
  return user;
}

const keysOfUser = ({ registry }: Needs<"registry">, { no }: User): ApiKey[] =>
  registry.keys().filter(({ ownerNo }) => ownerNo === no);

async function removeKeys({ registry, bell }: Needs<"registry" | "bell">, user: User): Promise<void> {
  for (const key of keysOfUser({ registry }, user)) {
    noteKeyEnd(key);
    await registry.removeKey(key);
  }
  bell.ring("calls");
}

const noteKeyEnd = ({ id, name, prefix }: ApiKey): void =>
  auditing.note(changed("key.delete", id, { name, prefix }, undefined));

/** What the audit log shows of a user. */
const recorded = ({ name, isAdmin, terms }: Pick<User, "name" | "isAdmin" | "terms">) => ({
  name,
  role: isAdmin ? "admin" : "member",
  ...showTerms(terms),
});

/** Users as callers see them. */
export const showUser = ({ id, name, isAdmin, createdAt, oldWebhookSecret, terms }: User) => ({
  id,
  name,
  role: isAdmin ? ("admin" as const) : ("member" as const),
  ...showTerms(terms),
  ...(createdAt === undefined ? {} : { createdAt: iso(createdAt) }),
  ...(oldWebhookSecret === undefined ? {} : { oldWebhookSecretUntil: iso(oldWebhookSecret.until) }),
});

function mayAdminister(caller: ApiKey): void {
  if (!caller.isAdmin) throw forbidden("Only an admin's key may make, change or delete users.");
}

function freeName({ registry }: Needs<"registry">, name: string | undefined, self: User | undefined): string {
  checkFields({ name: nameRule }, { name });
  if (!name) throw invalid("A user needs 'name': 1 to 191 visible characters.");
  if (registry.users().some((other) => other.name === name && other.no !== self?.no))
    throw new Refusal("IN_USE", `Another user is named '${name}'; choose another name.`);
  return name;
}
