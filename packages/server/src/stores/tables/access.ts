import type { Selectable } from "kysely";
import type { ApiKey } from "../../domain/access/key.js";
import type { User } from "../../domain/access/user.js";
import { limits } from "../../limits/index.js";
import type { AccessStore, NewKey } from "../../store/index.js";
import { maybe, type Runner, writeOne } from "./runner.js";
import type { Tables } from "./schema.js";

const toUser = (row: Selectable<Tables["user"]>): User => ({
  no: row.no,
  id: row.id,
  name: row.name,
  isAdmin: row.is_admin === 1,
  webhookSecret: row.webhook_secret,
  oldWebhookSecret:
    row.old_webhook_secret === null
      ? undefined
      : { sealed: row.old_webhook_secret, until: row.old_webhook_secret_until ?? 0 },
  pubKey: row.pub_key,
  terms: JSON.parse(row.terms),
  createdAt: maybe(row.created_at),
  deletedAt: maybe(row.deleted_at),
});

const ofUser = (user: Omit<User, "no" | "id">) => ({
  name: user.name,
  is_admin: Number(user.isAdmin),
  webhook_secret: user.webhookSecret,
  old_webhook_secret: user.oldWebhookSecret?.sealed ?? null,
  old_webhook_secret_until: user.oldWebhookSecret?.until ?? null,
  pub_key: user.pubKey,
  terms: JSON.stringify(user.terms),
  created_at: user.createdAt ?? null,
  deleted_at: user.deletedAt ?? null,
});

const toKey = (row: Selectable<Tables["api_key"]> & { is_admin: number }): ApiKey => ({
  no: row.no,
  id: row.id,
  name: row.name,
  hash: row.hash,
  prefix: row.prefix,
  ownerNo: row.owner_no,
  isAdmin: row.is_admin === 1,
  isBootstrap: row.is_bootstrap === 1,
  scope: JSON.parse(row.scope),
  createdAt: maybe(row.created_at),
  expiresAt: maybe(row.expires_at),
  old:
    row.old_hash === null ? undefined : { hash: row.old_hash, prefix: row.old_prefix ?? "", until: row.old_until ?? 0 },
});

const ofKey = (key: Omit<NewKey, "id" | "ownerNo" | "isBootstrap">) => ({
  name: key.name,
  hash: key.hash,
  prefix: key.prefix,
  scope: JSON.stringify(key.scope),
  created_at: key.createdAt ?? null,
  expires_at: key.expiresAt ?? null,
  old_hash: key.old?.hash ?? null,
  old_prefix: key.old?.prefix ?? null,
  old_until: key.old?.until ?? null,
});

/** Users and their keys, and when keys were last used. */
export function accessStore(runner: Runner): AccessStore {
  const { sql } = runner;
  const keys = sql
    .selectFrom("api_key")
    .innerJoin("user", "user.no", "api_key.owner_no")
    .selectAll("api_key")
    .select("user.is_admin");
  const deleteKeys = (column: "no" | "owner_no" | "is_bootstrap", value: number) => {
    const gone = sql.selectFrom("api_key").select("no").where(column, "=", value);
    return [
      sql.deleteFrom("key_use").where("key_no", "in", gone).compile(),
      sql.deleteFrom("api_key").where(column, "=", value).compile(),
    ];
  };
  return {
    users: async () => (await runner.read(sql.selectFrom("user").selectAll().orderBy("no").compile())).map(toUser),
    createUser: async (user) => {
      const values = { id: user.id, ...ofUser(user) };
      const { no } = await writeOne(runner, sql.insertInto("user").values(values).returning("no").compile());
      return { ...user, no };
    },
    saveUser: async (user) => {
      await runner.write([sql.updateTable("user").set(ofUser(user)).where("no", "=", user.no).compile()]);
    },
    giveAll: async (fromNo, toNo) => {
      // deliveries held for the old owner's receivers go out: the new owner may pause its own
      const tables = ["endpoint", "template", "volume", "registry_auth", "secret"] as const;
      await runner.write([
        ...tables.map((table) =>
          sql.updateTable(table).set({ owner_no: toNo }).where("owner_no", "=", fromNo).compile(),
        ),
        sql.updateTable("receiver").set({ paused_at: null }).where("owner_no", "=", fromNo).compile(),
      ]);
    },
    removeUser: async (no, deletedAt) => {
      const mark = sql.updateTable("user").set({ deleted_at: deletedAt }).where("no", "=", no).compile();
      const resume = sql.updateTable("receiver").set({ paused_at: null }).where("owner_no", "=", no).compile();
      await runner.write([...deleteKeys("owner_no", no), mark, resume]);
    },
    forgetUsers: async (deletedBefore) => {
      await runner.write([sql.deleteFrom("user").where("deleted_at", "<=", deletedBefore).compile()]);
    },
    keys: async () => (await runner.read(keys.orderBy("api_key.no").compile())).map(toKey),
    someKeys: async (nos) => {
      const found: ApiKey[] = [];
      for (let from = 0; from < nos.length; from += limits.rowsReadAtOnce) {
        const some = nos.slice(from, from + limits.rowsReadAtOnce);
        found.push(...(await runner.read(keys.where("api_key.no", "in", some).compile())).map(toKey));
      }
      return found;
    },
    existing: async (hashes) => {
      const query = sql
        .selectFrom("api_key")
        .select(["hash", "old_hash"])
        .where((eb) => eb.or([eb("hash", "in", hashes), eb("old_hash", "in", hashes)]));
      const found = (await runner.read(query.compile())).flatMap((row) => [row.hash, row.old_hash]);
      return found.filter((hash) => hash !== null && hashes.includes(hash)) as string[];
    },
    createKey: async (key) => {
      const { id, ownerNo, isBootstrap } = key;
      const values = { id, owner_no: ownerNo, is_bootstrap: Number(isBootstrap), ...ofKey(key) };
      await runner.write([
        ...(isBootstrap ? deleteKeys("is_bootstrap", 1) : []),
        sql.insertInto("api_key").values(values).compile(),
      ]);
      const [row] = await runner.read(keys.where("api_key.id", "=", id).compile());
      return toKey(row!);
    },
    saveKey: async (key) => {
      await runner.write([sql.updateTable("api_key").set(ofKey(key)).where("no", "=", key.no).compile()]);
    },
    removeKey: async (no) => {
      await runner.write(deleteKeys("no", no));
    },
    environmentKey: async () =>
      (await runner.read(sql.selectFrom("environment_key").select("hash").compile()))[0]?.hash,
    setEnvironmentKey: async (hash) => {
      await runner.write([
        sql.deleteFrom("environment_key").compile(),
        sql.insertInto("environment_key").values({ hash }).compile(),
      ]);
    },
    noteUses: async (uses) => {
      // in one order, so that two servers do not wait for each other
      const values = [...uses].map(([key_no, at]) => ({ key_no, at })).sort((a, b) => a.key_no - b.key_no);
      for (let from = 0; from < values.length; from += limits.keyUsesPerWrite) {
        const query = sql
          .insertInto("key_use")
          .values(values.slice(from, from + limits.keyUsesPerWrite))
          .onConflict((on) =>
            on
              .column("key_no")
              .doUpdateSet((eb) => ({ at: eb.ref("excluded.at") }))
              .whereRef("key_use.at", "<", (eb) => eb.ref("excluded.at")),
          );
        await runner.write([query.compile()]);
      }
    },
    lastUses: async (keyNos) => {
      if (keyNos.length === 0) return new Map();
      const query = sql.selectFrom("key_use").selectAll().where("key_no", "in", keyNos);
      return new Map((await runner.read(query.compile())).map((row) => [row.key_no, row.at]));
    },
  };
}
