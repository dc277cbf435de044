import { changed } from "../../domain/access/audit.js";
import type { ApiKey } from "../../domain/access/key.js";
import { secretsNamed } from "../../domain/access/secret.js";
import type { User } from "../../domain/access/user.js";
import { servingVersion } from "../../domain/endpoints/endpoint.js";
import { isPath } from "../../domain/endpoints/template.js";
import { forbidden, invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import { turns } from "../../turns.js";
import { deleteEndpoint } from "../endpoints/save-endpoint.js";
import { checkFields, nameRule } from "../fields.js";
import type { Needs, Parts } from "../needs.js";
import { iso } from "../show-resources.js";
import { deleteRegistryAuth } from "../templates/save-registry-auth.js";
import { deleteTemplate } from "../templates/save-template.js";
import { deleteVolume } from "../volumes/save-volume.js";
import { type Caller, changeAccessAs, changeAs } from "./change-as.js";
import { mayKeep, userFor } from "./save-key.js";
import { removeSecret } from "./save-secret.js";
import { newWebhookSecret } from "./secrets.js";
import { seesMore } from "./visible.js";

type Saving = Needs<"registry" | "ids" | "vault" | "clock">;

/** What a caller may send of a user: absent keeps. */
export interface UserInput {
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
  { name, role = "member" }: UserInput,
): Promise<{ user: User; webhookSecret: string }> {
  return changeAccessAs(needs, asking, async (caller) => {
    mayAdminister(caller);
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
      createdAt: needs.clock.now(),
      deletedAt: undefined,
    };
    auditing.note(changed("user.create", made.id, undefined, recorded(made)));
    return { user: await needs.registry.createUser(made), webhookSecret };
  });
}

/** Changes a user's name or role; the first admin stays an admin. */
export function updateUser(needs: Saving, asking: Caller, id: string, { name, role }: UserInput): Promise<User> {
  return changeAccessAs(needs, asking, async (caller) => {
    mayAdminister(caller);
    const user = changeable(needs, caller, id);
    if (role === "member" && needs.registry.isFirstAdmin(user.no))
      throw new Refusal("INVALID_STATE", "The first admin stays an admin: the bootstrap key is its own.");
    const next = {
      ...user,
      ...(name === undefined ? {} : { name: freeName(needs, name, user) }),
      ...(role === undefined ? {} : { isAdmin: role === "admin" }),
    };
    auditing.note(changed("user.update", id, recorded(user), recorded(next)));
    return needs.registry.saveUser(next);
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

/** Refuses to delete public templates that other users' endpoints use. */
function checkUsedByOthers({ registry }: Needs<"registry">, { no, id }: User): void {
  const others = registry.endpoints().filter((each) => each.ownerNo !== no && each.deletedAt === undefined);
  const used = new Set(others.map(({ settings }) => settings.templateId));
  const count = registry.templates().filter((template) => template.ownerNo === no && used.has(template.id)).length;
  if (count === 0) return;
  const which = count === 1 ? "A public template" : `${count} public templates`;
  throw new Refusal(
    "IN_USE",
    `${which} of the user '${id}' ${count === 1 ? "is" : "are"} used by others: use ?transferTo={userId}.`,
  );
}

async function removeKeys({ registry, bell }: Needs<"registry" | "bell">, { no }: User): Promise<void> {
  for (const key of registry.keys()) {
    if (key.ownerNo !== no) continue;
    auditing.note(changed("key.delete", key.id, { name: key.name, prefix: key.prefix }, undefined));
    await registry.removeKey(key);
  }
  bell.ring("calls");
}

/** What a user owns. */
async function owns({ registry, secrets }: Needs<"registry" | "secrets">, { no }: User) {
  const isTheirs = ({ ownerNo }: { ownerNo: number }) => ownerNo === no;
  return {
    endpoints: registry.endpoints().filter((each) => isTheirs(each) && each.deletedAt === undefined),
    templates: registry.templates().filter(isTheirs),
    volumes: registry.volumes().filter(isTheirs),
    registryAuths: registry.registryAuths().filter(isTheirs),
    secrets: await secrets.of(no),
  };
}

const nouns = {
  endpoints: ["endpoint", "endpoints"],
  templates: ["template", "templates"],
  volumes: ["network volume", "network volumes"],
  registryAuths: ["container registry auth", "container registry auths"],
  secrets: ["secret", "secrets"],
} as const;

/** What is owned, in words: `2 endpoints, 1 template`; empty if nothing is. */
function describe(owned: Awaited<ReturnType<typeof owns>>): string {
  const counted = Object.entries(nouns).flatMap(([noun, [one, many]]) => {
    const count = owned[noun as keyof typeof nouns].length;
    return count === 0 ? [] : [`${count} ${count === 1 ? one : many}`];
  });
  return counted.join(", ");
}

async function deleteAll(needs: Parts, asking: Caller, user: User): Promise<void> {
  const { endpoints, templates, volumes, registryAuths, secrets } = await owns(needs, user);
  for (const endpoint of endpoints) await unlessGone(deleteEndpoint(needs, asking, endpoint, { setToZero: true }));
  for (const template of templates) await unlessGone(deleteTemplate(needs, asking, template));
  for (const auth of registryAuths) await unlessGone(deleteRegistryAuth(needs, asking, auth, user.no));
  for (const { id } of volumes)
    if (needs.registry.volume(id)) await unlessGone(deleteVolume(needs, asking, id, user.no));
  for (const secret of secrets) await changeAs(needs, asking, () => removeSecret(needs, secret));
}

/** Waits for a deletion; the same request, sent twice at once, may have made it already. */
async function unlessGone(deletion: Promise<void>): Promise<void> {
  await deletion.catch((error) => {
    if (!(error instanceof Refusal && error.status === 404)) throw error;
  });
}

/** Gives all of a user's resources to another user. First refuses names that both have used, and local processes. */
async function transfer(needs: Parts, caller: ApiKey, user: User, heirId: string): Promise<void> {
  const { registry } = needs;
  const heir = userFor(needs, caller, heirId);
  if (heir.no === user.no) throw invalid("'transferTo' must name another user.");
  mayKeep(needs, caller, heir);
  const [given, kept] = [await owns(needs, user), await owns(needs, heir)];
  const local = given.templates.find(({ settings }) => isPath(settings.imageName));
  if (local && !registry.isFirstAdmin(heir.no))
    throw new Refusal("IN_USE", `The template '${local.id}' runs local processes, which only the first admin may.`);
  const taken = new Set(kept.templates.map(({ settings }) => settings.name));
  const same = given.templates.find(({ settings }) => taken.has(settings.name));
  if (same) throw new Refusal("IN_USE", `Both users have a template named '${same.settings.name}': rename one first.`);
  const auths = new Set(kept.registryAuths.map(({ name }) => name));
  const sameAuth = given.registryAuths.find(({ name }) => auths.has(name));
  if (sameAuth)
    throw new Refusal(
      "IN_USE",
      `Both users have a container registry auth named '${sameAuth.name}': delete one first.`,
    );
  const secrets = new Set(kept.secrets.map(({ name }) => name));
  const sameSecret = given.secrets.find(({ name }) => secrets.has(name));
  if (sameSecret) throw new Refusal("IN_USE", `Both users have a secret named '${sameSecret.name}': delete one first.`);
  const asked = await secretsAskedBy(needs, given);
  const gained = kept.secrets.find(({ name }) => asked.has(name));
  if (gained) {
    const words = `A resource of the user '${user.id}' refers to a secret '${gained.name}', which '${user.id}' lacks and '${heir.id}' has`;
    throw new Refusal("IN_USE", `${words}: remove the reference first, or transfer to another user.`);
  }
  auditing.note({ action: "user.transfer", resource: user.id, after: { to: heir.id, what: describe(given) } });
  await registry.giveAll(user.no, heir.no);
}

/** The names of the secrets that a user's resources refer to, now and in the versions that their workers are made of. */
async function secretsAskedBy(
  { registry }: Needs<"registry">,
  { endpoints, templates }: Awaited<ReturnType<typeof owns>>,
) {
  const envs = [...endpoints, ...templates].map(({ settings }) => settings.env);
  for (const endpoint of endpoints)
    for (const n of new Set([endpoint.version, servingVersion(endpoint)])) {
      if (turns.isOver) await turns.take(["changes"]);
      const release = await registry.release(endpoint.no, n);
      if (release) envs.push(release.settings.env, release.template.env);
    }
  return new Set(envs.flatMap(secretsNamed));
}

/** What the audit log shows of a user. */
const recorded = ({ name, isAdmin }: Pick<User, "name" | "isAdmin">) => ({ name, role: isAdmin ? "admin" : "member" });

/** Users as callers see them. */
export const showUser = ({ id, name, isAdmin, createdAt, oldWebhookSecret }: User) => ({
  id,
  name,
  role: isAdmin ? ("admin" as const) : ("member" as const),
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
