import { changed, deleted } from "../../domain/access/audit.js";
import type { ApiKey } from "../../domain/access/key.js";
import { type Endpoint, servingVersion } from "../../domain/endpoints/endpoint.js";
import type { RegistryAuth } from "../../domain/endpoints/registry-auth.js";
import { invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import { turns } from "../../turns.js";
import { type Caller, changeAs } from "../access/change-as.js";
import { saveAndRelease } from "../endpoints/save-endpoint.js";
import { checkFields, text } from "../fields.js";
import type { Needs } from "../needs.js";

type Saving = Needs<"registry" | "here" | "ids" | "bell" | "clock" | "emit" | "vault" | "tallies" | "reader">;

/** Versions hold whole environments: other work gets its turn between looks into them. */
const lane = ["changes"] as const;

type Owner = Pick<ApiKey, "ownerNo">;

/** What a registry asks for, as the owner sends it. */
interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** The fields of credentials that a caller may send over any interface; the name is checked below. A password may be a key file. */
export const registryAuthFields = { username: text(1_000, "none"), password: text(20_000, "lines") };

/** The caller's credentials. Another user's are refused exactly like unknown ones. */
export function ownRegistryAuth({ registry }: Needs<"registry">, caller: Owner, id: string): RegistryAuth {
  const auth = registry.registryAuth(id);
  if (auth?.ownerNo !== caller.ownerNo) {
    throw new Refusal("NOT_FOUND", `There is no container registry auth '${id.slice(0, 80)}' for this key.`);
  }
  return auth;
}

/** Stores credentials, sealed, under a name that is unique for their owner. */
export function createRegistryAuth(
  needs: Saving,
  asking: Caller,
  { name, ...given }: Credentials & { readonly name: string },
): Promise<RegistryAuth> {
  return changeAs(needs, asking, async (caller) => {
    if (!/^\P{Cc}{1,191}$/u.test(name))
      throw invalid("A container registry auth needs 'name': 1 to 191 visible characters.");
    const mine = needs.registry.registryAuths().filter(({ ownerNo }) => ownerNo === caller.ownerNo);
    if (mine.length >= limits.registryAuthsPerUserMax) {
      const words = `A user may have ${limits.registryAuthsPerUserMax} container registry auths: delete one first.`;
      throw new Refusal("IN_USE", words);
    }
    if (mine.some((other) => other.name === name)) {
      throw new Refusal("IN_USE", `Another container registry auth of yours is named '${name}'; choose another name.`);
    }
    const id = needs.ids.resource();
    auditing.note(changed("registryAuth.create", id, undefined, { name }));
    return needs.registry.createRegistryAuth({ id, ownerNo: caller.ownerNo, name, ...sealed(needs, given) });
  });
}

/** Replaces the credentials. Endpoints that wait after a refused pull try again at once. */
export function updateRegistryAuth(
  needs: Saving,
  asking: Caller,
  auth: RegistryAuth,
  given: Credentials,
): Promise<RegistryAuth> {
  return changeAs(needs, asking, async (caller) => {
    const current = ownRegistryAuth(needs, caller, auth.id);
    auditing.note({ action: "registryAuth.update", resource: current.id });
    const saved = await needs.registry.saveRegistryAuth({ ...current, ...sealed(needs, given) });
    const templateIds = new Set(templatesWith(needs, saved).map(({ id }) => id));
    for (const endpoint of needs.registry.endpoints()) {
      if (turns.isOver) await turns.take(lane);
      if (endpoint.deletedAt !== undefined || (endpoint.failedStarts === 0 && endpoint.heldVersion === undefined))
        continue;
      if (templateIds.has(endpoint.settings.templateId) || (await isReleasedWith(needs, endpoint, saved)))
        await saveAndRelease(needs, endpoint, endpoint.settings, undefined);
    }
    return saved;
  });
}

/**
 * Deletes credentials that neither a template nor the current or serving version of an endpoint uses. `ownerNo`: the
 * owner that they must have.
 */
export function deleteRegistryAuth(
  needs: Saving,
  asking: Caller,
  auth: RegistryAuth,
  ownerNo: number = asking.ownerNo,
): Promise<void> {
  return changeAs(needs, asking, async (caller) => {
    const current = ownRegistryAuth(needs, { ownerNo }, auth.id);
    const [user] = templatesWith(needs, current);
    if (user) {
      throw new Refusal("IN_USE", `The template '${user.id}' uses this container registry auth; detach it first.`);
    }
    for (const endpoint of needs.registry.endpoints()) {
      if (turns.isOver) await turns.take(lane);
      if (endpoint.deletedAt !== undefined || !(await isReleasedWith(needs, endpoint, current))) continue;
      const what = `The current or serving version of the endpoint '${endpoint.id}' uses this container registry auth`;
      throw new Refusal("IN_USE", `${what}; release a version without it, or delete the endpoint first.`);
    }
    auditing.note(deleted("registryAuth.delete", current.id, { name: current.name }, ownerNo === caller.ownerNo));
    await needs.registry.removeRegistryAuth(current);
  });
}

const templatesWith = ({ registry }: Needs<"registry">, { id }: RegistryAuth) =>
  registry.templates().filter(({ settings }) => settings.containerRegistryAuthId === id);

/**
 * Whether workers of the endpoint's current or serving version may still be made with these credentials, whatever the
 * template says now.
 */
async function isReleasedWith(
  { registry }: Needs<"registry">,
  endpoint: Endpoint,
  { id }: RegistryAuth,
): Promise<boolean> {
  for (const n of new Set([endpoint.version, servingVersion(endpoint)])) {
    const release = await registry.release(endpoint.no, n);
    if (release?.template.containerRegistryAuthId === id) return true;
  }
  return false;
}

function sealed({ vault }: Needs<"vault">, { username, password }: Credentials): Credentials {
  checkFields(registryAuthFields, { username, password });
  if (!username || !password) throw invalid("A container registry auth needs 'username' and 'password'.");
  return { username: vault.seal(username), password: vault.seal(password) };
}
