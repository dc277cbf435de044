import type { Stores } from "../../packages/server/src/store/index.js";
import { openInMemory } from "../../packages/server/src/testing/database-fixture.js";
import { plainKey, plainUser } from "../../packages/server/src/testing/facts-fixture.js";
import { vault } from "./server.js";

/** A database with an admin's key and the world's host. */
export async function openStores(): Promise<{ stores: Stores; hostNo: number; keyHash: string }> {
  const onFatal = (error: Error) => {
    throw error;
  };
  const stores = openInMemory(onFatal);
  const keyHash = vault.hash("mr_admin-key-of-this-world");
  const webhookSecret = vault.seal(`whsec_${Buffer.alloc(24, 5).toString("base64")}`);
  const owner = await stores.access.createUser({
    ...plainUser,
    id: "user_of-this-world",
    isAdmin: true,
    webhookSecret,
  });
  await stores.access.createKey({ ...plainKey, hash: keyHash, ownerNo: owner.no, isBootstrap: true });
  const hostNo = await stores.hosts.ensure("host", 0);
  return { stores, hostNo, keyHash };
}
