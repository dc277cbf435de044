import type { Config } from "../config.js";
import { type DataDirectory, StartError } from "../data-directory.js";
import type { Ids } from "../ids.js";
import type { Stores } from "../store.js";
import type { Vault } from "../vault.js";

/** The admin and the bootstrap key: given by the environment, kept from before, or made now. */
export async function ensureAdmin(config: Config, directory: DataDirectory, stores: Stores, vault: Vault, ids: Ids) {
  let [admin] = await stores.keys.users();
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
  // where servers share a database, the first makes the key
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
