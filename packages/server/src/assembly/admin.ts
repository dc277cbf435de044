import type { Clock } from "../clock.js";
import type { Config } from "../config.js";
import type { ApiKey } from "../domain/access/key.js";
import { type DataDirectory, randomHex, StartError } from "../host/data-directory.js";
import type { Ids } from "../ids.js";
import { newApiKey, newWebhookSecret, prefixOf } from "../operations/access/secrets.js";
import type { BootstrapKey } from "../operations/needs.js";
import type { Stores } from "../store/index.js";
import type { Vault } from "../vault.js";

/** The key that seals secrets: set by the environment, kept from an earlier start, or drawn here and kept once used. */
export function sealKeyOf(config: Config, directory: DataDirectory): { hex: string; isNew: boolean } {
  const known = config.sealKey ?? directory.read("seal-key");
  return { hex: known ?? randomHex(32), isNew: known === undefined };
}

/** What making the admin needs. */
interface Needed {
  readonly config: Config;
  readonly directory: DataDirectory;
  readonly stores: Stores;
  readonly vault: Vault;
  readonly sealKey: { readonly hex: string; readonly isNew: boolean };
  readonly ids: Ids;
  readonly clock: Clock;
}

/** Makes sure that there is an admin with a bootstrap key: set by the environment, kept from before, or made now. */
export async function ensureAdmin(needed: Needed): Promise<{ key: string | undefined; newKey: string | undefined }> {
  const { config, directory, stores, vault, sealKey, ids, clock } = needed;
  const { access } = stores;
  let [admin] = await access.users();
  // a drawn key is kept before anything is sealed with it, and never if secrets sealed with another one exist
  if (sealKey.isNew && admin) throw new StartError(sealKeyMissing(config));
  if (sealKey.isNew) directory.keep("seal-key", sealKey.hex);
  admin ??= await access.createUser({
    id: `user_${ids.resource()}`,
    name: "admin",
    isAdmin: true,
    webhookSecret: vault.seal(newWebhookSecret(ids)),
    oldWebhookSecret: undefined,
    pubKey: "",
    terms: {},
    createdAt: clock.now(),
    deletedAt: undefined,
  });
  try {
    vault.open(admin.webhookSecret);
  } catch {
    throw new StartError(
      "MILLRACE_SEAL_KEY is not the key that sealed the secrets stored here: set the key of the first start.",
    );
  }
  const keys = await access.keys();
  finishRotation(needed, keys);
  const present = keys.find(({ isBootstrap }) => isBootstrap);
  const given = config.apiKey;
  // the environment's key is taken over once: if it is rotated later, the next start must not bring it back
  const isNews = given !== undefined && vault.hash(given) !== (await access.environmentKey());
  if (isNews) directory.keep("api-key", given);
  // if servers share a database, the first one makes the key
  if (stores.shared && keys.length > 0 && !directory.holds("api-key")) return { key: undefined, newKey: undefined };
  let newKey: string | undefined;
  const key = directory.secret("api-key", () => {
    newKey = newApiKey(ids);
    return newKey;
  });
  const hash = vault.hash(key);
  const isKnown = keys.some((each) => each.hash === hash || each.old?.hash === hash);
  const isStale = stores.shared !== undefined && present !== undefined && !isNews;
  if (!isKnown && isStale) return { key: undefined, newKey };
  if (!isKnown) {
    await access.createKey({
      id: ids.resource(),
      name: "bootstrap",
      hash,
      prefix: prefixOf(key),
      ownerNo: admin.no,
      isBootstrap: true,
      scope: { kind: "everything" },
      createdAt: clock.now(),
      expiresAt: undefined,
      old: undefined,
    });
  }
  if (isNews) await access.setEnvironmentKey(hash);
  return { key, newKey };
}

const nextKey = "api-key.next";

/** Finishes or undoes a rotation of the bootstrap key that a crash has cut off. */
function finishRotation({ directory, vault }: Needed, keys: readonly ApiKey[]): void {
  const next = directory.read(nextKey);
  if (next === undefined) return;
  const hash = vault.hash(next);
  if (keys.some((key) => key.hash === hash)) directory.keep("api-key", next);
  directory.discard(nextKey);
}

/** The bootstrap key in the data directory. */
export const keptKey = (directory: DataDirectory): BootstrapKey => ({
  async replace(key, store) {
    directory.keep(nextKey, key);
    await store();
    directory.keep("api-key", key);
    directory.discard(nextKey);
  },
});

const sealKeyMissing = ({ databaseUrl, dataDir }: Config): string =>
  databaseUrl === undefined
    ? `The seal key is missing: put the file seal-key back into ${dataDir}, or set MILLRACE_SEAL_KEY to what it held.`
    : "The seal key is missing: set MILLRACE_SEAL_KEY to the key of the first server of this database, which is in that server's settings or in the file seal-key of its data directory.";
