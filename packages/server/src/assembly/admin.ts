import type { Config } from "../config.js";
import { type DataDirectory, randomHex, StartError } from "../host/data-directory.js";
import type { Ids } from "../ids.js";
import type { Stores } from "../store/index.js";
import type { Vault } from "../vault.js";

/** The key that seals secrets: set by the environment, kept from before, or drawn now and then kept once it is used. */
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
}

/** Makes sure that there is an admin with a bootstrap key: set by the environment, kept from before, or made now. */
export async function ensureAdmin({ config, directory, stores, vault, sealKey, ids }: Needed) {
  let [admin] = await stores.keys.users();
  // a drawn key is kept before anything is sealed with it, and never if secrets sealed with another one exist
  if (sealKey.isNew && admin) throw new StartError(sealKeyMissing(config));
  if (sealKey.isNew) directory.keep("seal-key", sealKey.hex);
  if (!admin) {
    const secret = `whsec_${Buffer.from(ids.secret(24), "base64url").toString("base64")}`;
    admin = await stores.keys.createUser({
      id: `user_${ids.resource()}`,
      isAdmin: true,
      webhookSecret: vault.seal(secret),
    });
  }
  try {
    vault.open(admin.webhookSecret);
  } catch {
    throw new StartError(
      "MILLRACE_SEAL_KEY is not the key that sealed the secrets stored here: set the one of the first start.",
    );
  }
  let newKey: string | undefined;
  if (config.apiKey !== undefined) directory.keep("api-key", config.apiKey);
  const keys = await stores.keys.keys();
  // if servers share a database, the first one makes the key
  if (stores.shared && keys.length > 0 && !directory.holds("api-key")) return { key: undefined, newKey };
  const key = directory.secret("api-key", () => {
    newKey = `mr_${ids.secret(32)}`;
    return newKey;
  });
  const hash = vault.hash(key);
  if (!keys.some((each) => each.hash === hash)) {
    const scope = { kind: "everything" } as const;
    await stores.keys.add({ hash, ownerNo: admin.no, scope, prefix: key.slice(0, 6), isBootstrap: true });
  }
  return { key, newKey };
}

const sealKeyMissing = ({ databaseUrl, dataDir }: Config): string =>
  databaseUrl === undefined
    ? `The seal key is missing: put the file seal-key back into ${dataDir}, or set MILLRACE_SEAL_KEY to what it held.`
    : "The seal key is missing: set MILLRACE_SEAL_KEY to the one of the first server of this database, which is in its settings or in the file seal-key of its data directory.";
