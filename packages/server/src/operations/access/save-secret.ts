import { changed, deleted, updated } from "../../domain/access/audit.js";
import type { ApiKey } from "../../domain/access/key.js";
import {
  type HiddenSpan,
  lengthWithSecrets,
  type Secret,
  secretsNamed,
  withSecrets,
} from "../../domain/access/secret.js";
import { invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import { saveAndRelease } from "../endpoints/save-endpoint.js";
import { checkFields, text } from "../fields.js";
import type { Needs } from "../needs.js";
import { iso } from "../show-resources.js";
import { type Caller, changeAs } from "./change-as.js";
import { seesMore } from "./visible.js";

type Saving = Needs<
  "registry" | "secrets" | "ids" | "vault" | "clock" | "bell" | "emit" | "tallies" | "reader" | "here"
>;

/** The fields of a secret that a caller may send over any interface. */
export const secretFields = {
  name: text(limits.secretNameCharsMax, "none"),
  description: text(1_000, "lines"),
  value: text(limits.secretCharsMax),
};

export interface SecretInput {
  readonly name: string;
  readonly value: string;
  readonly description?: string | null;
}

export type SecretChange = Partial<Pick<SecretInput, "value" | "description">>;

/** The caller's secrets, without their values. */
export function secretsOf({ secrets }: Needs<"secrets">, caller: ApiKey): Promise<Secret[]> {
  seesMore(caller, "secrets");
  return secrets.of(caller.ownerNo);
}

/** The caller's secret, without its value. Another user's is refused exactly like an unknown one. */
export async function ownSecret(needs: Needs<"secrets">, caller: ApiKey, id: string): Promise<Secret> {
  const found = (await secretsOf(needs, caller)).find((secret) => secret.id === id);
  if (!found) throw new Refusal("NOT_FOUND", `There is no secret '${id.slice(0, 80)}' for this key.`);
  return found;
}

/**
 * Stores a secret, sealed. Its value is never returned: workers alone get it. Endpoints held up because it was missing
 * try again at once.
 */
export function createSecret(needs: Saving, asking: Caller, input: SecretInput): Promise<Secret> {
  return changeAs(needs, asking, async (caller) => {
    checkFields(secretFields, { ...input });
    const { name, value, description } = input;
    if (!/^[\w-]+$/.test(name)) throw invalid("A secret needs 'name': letters, digits, '_' and '-'.");
    checkValue(value);
    const mine = await needs.secrets.of(caller.ownerNo);
    if (mine.some((other) => other.name === name))
      throw new Refusal(
        "IN_USE",
        `Another secret of yours is named '${name}': choose another name, or change its value.`,
      );
    if (mine.length >= limits.secretsPerUserMax)
      throw new Refusal("IN_USE", `A user may have ${limits.secretsPerUserMax} secrets: delete one first.`);
    const id = needs.ids.resource();
    auditing.note(changed("secret.create", id, undefined, { name, description: description ?? "" }));
    const secret = await needs.secrets.create({
      id,
      ownerNo: caller.ownerNo,
      name,
      description: description ?? "",
      createdAt: needs.clock.now(),
      value: needs.vault.seal(value),
    });
    await tryAgain(needs, secret);
    return secret;
  });
}

function checkValue(value: string): void {
  if (value.length < limits.secretCharsMin)
    throw invalid(
      `A secret needs 'value': ${limits.secretCharsMin} characters at least, because it is masked wherever it stands in a log.`,
    );
  if (value.includes("\0")) throw invalid("'value' must be a string without NUL.");
}

/**
 * Changes the fields that are given; null takes the description away. Workers that have the old value keep it until they
 * end. Endpoints whose workers failed with it try again at once.
 */
export function updateSecret(
  needs: Saving,
  asking: Caller,
  id: string,
  { value, description }: SecretChange,
): Promise<Secret> {
  return changeAs(needs, asking, async (caller) => {
    const before = await ownSecret(needs, caller, id);
    checkFields(secretFields, {
      ...(value === undefined ? {} : { value }),
      ...(description === undefined ? {} : { description }),
    });
    if (value !== undefined) checkValue(value);
    const after = { ...before, description: description === undefined ? before.description : (description ?? "") };
    const shown = ({ name, description }: Secret) => ({ name, description });
    const isNew = value !== undefined;
    auditing.note(updated("secret.update", id, shown(before), { ...shown(after), ...(isNew ? { value: "…" } : {}) }));
    const sealed = isNew ? { value: needs.vault.seal(value) } : {};
    await needs.secrets.change(before.no, { description: after.description, ...sealed });
    if (isNew) await tryAgain(needs, after);
    return after;
  });
}

/** Ends the pauses of its owner's endpoints that refer to a secret. */
async function tryAgain(needs: Saving, { ownerNo, name }: Secret): Promise<void> {
  const { registry } = needs;
  for (const endpoint of registry.endpoints()) {
    if (endpoint.ownerNo !== ownerNo || endpoint.deletedAt !== undefined) continue;
    if (endpoint.failedStarts === 0 && endpoint.heldVersion === undefined) continue;
    const release = await registry.release(endpoint.no, endpoint.version);
    if (release && secretsNamed({ ...release.template.env, ...release.settings.env }).includes(name))
      await saveAndRelease(needs, endpoint, endpoint.settings, undefined);
  }
}

/** Deletes a secret. Workers that have it keep it; later workers fail to start if they need it. */
export function deleteSecret(needs: Saving, asking: Caller, id: string): Promise<void> {
  return changeAs(needs, asking, async (caller) => removeSecret(needs, caller, await ownSecret(needs, caller, id)));
}

/** Removes a secret as a part of a change. */
export function removeSecret({ secrets }: Needs<"secrets">, caller: ApiKey, secret: Secret): Promise<void> {
  const { no, id, name, description } = secret;
  auditing.note(deleted("secret.delete", id, { name, description }, secret.ownerNo === caller.ownerNo));
  return secrets.remove(no);
}

/** A secret as callers see it. */
export const showSecret = ({ id, name, description, createdAt }: Secret) => ({
  id,
  name,
  description,
  createdAt: iso(createdAt),
});

/** An environment with the secrets in place, and where they are. */
interface FilledEnvironment {
  readonly env: Readonly<Record<string, string>>;
  readonly hidden: readonly HiddenSpan[];
}

/**
 * The environment of an endpoint's workers, with its owner's secrets in place. A template of another user gets none of
 * them: its author would choose both the secret and the image that reads it. Throws a sentence that says what is wrong.
 */
export async function fillSecrets(
  { secrets, vault }: Needs<"secrets" | "vault">,
  ownerNo: number,
  template: { readonly env: Readonly<Record<string, string>>; readonly isOwn: boolean },
  own: Readonly<Record<string, string>>,
): Promise<FilledEnvironment> {
  const env = { ...template.env, ...own };
  const names = secretsNamed(env);
  if (names.length === 0) return { env, hidden: [] };
  const kept = Object.entries(template.env).filter(([variable]) => !Object.hasOwn(own, variable));
  const foreign = template.isOwn ? [] : secretsNamed(Object.fromEntries(kept));
  if (foreign.length > 0) {
    const what = `its template belongs to another user and refers to ${quoted(foreign)}`;
    throw new Error(`${what}: set these variables in the endpoint's own environment`);
  }
  const sealed = await secrets.values(ownerNo, names);
  const missing = names.filter((name) => !sealed.has(name));
  if (missing.length > 0) {
    const what = `its environment refers to ${quoted(missing)}, and its owner has no such secret`;
    throw new Error(`${what}: make it with POST /v1/secrets`);
  }
  const values = new Map([...sealed].map(([name, value]) => [name, vault.open(value)]));
  if (lengthWithSecrets(env, values) > limits.filledEnvCharsMax)
    throw new Error(
      `its environment has more than ${limits.filledEnvCharsMax} characters with its secrets in place: refer to fewer`,
    );
  return withSecrets(env, values);
}

/** Names in quotes, the first few if there are many. */
function quoted(names: readonly string[]): string {
  const shown = names.slice(0, 5).map((name) => `'${name}'`);
  return names.length > shown.length ? `${shown.join(", ")} and ${names.length - shown.length} more` : shown.join(", ");
}
