import type { Selectable } from "kysely";
import type { RegistryAuth } from "../../domain/endpoints/registry-auth.js";
import type { Template } from "../../domain/endpoints/template.js";
import type { Volume } from "../../domain/endpoints/volume.js";
import type { RegistryAuthStore, TemplateStore, VolumeStore } from "../../store/index.js";
import { allRows, someRows } from "./all-rows.js";
import { compact, type Runner, writeOne } from "./runner.js";
import type { Tables } from "./schema.js";

const toTemplate = (row: Selectable<Tables["template"]>): Template => ({
  no: row.no,
  id: row.id,
  ownerNo: row.owner_no,
  settings: JSON.parse(row.settings),
});

export function templateStore(runner: Runner): TemplateStore {
  const { sql } = runner;
  return {
    create: async ({ id, ownerNo, settings }) =>
      toTemplate(
        await writeOne(
          runner,
          sql
            .insertInto("template")
            .values({ id, owner_no: ownerNo, settings: JSON.stringify(settings) })
            .returningAll()
            .compile(),
        ),
      ),
    save: async (no, settings) => {
      const change = { settings: JSON.stringify(settings) };
      await runner.write([sql.updateTable("template").set(change).where("no", "=", no).compile()]);
    },
    remove: async (no) => {
      await runner.write([sql.deleteFrom("template").where("no", "=", no).compile()]);
    },
    all: allRows(runner, "template", "true", toTemplate),
    some: someRows(runner, "template", toTemplate),
  };
}

const toVolume = (row: Selectable<Tables["volume"]>): Volume => ({
  no: row.no,
  id: row.id,
  ownerNo: row.owner_no,
  name: row.name,
  size: row.size,
  dataCenterId: row.data_center_id,
  sizedAt: row.sized_at,
  gbMs: row.gb_ms,
});

export function volumeStore(runner: Runner): VolumeStore {
  const { sql } = runner;
  return {
    create: async ({ id, ownerNo, name, size, dataCenterId, sizedAt, gbMs }) =>
      toVolume(
        await writeOne(
          runner,
          sql
            .insertInto("volume")
            .values({ id, owner_no: ownerNo, name, size, data_center_id: dataCenterId, sized_at: sizedAt, gb_ms: gbMs })
            .returningAll()
            .compile(),
        ),
      ),
    save: async ({ no, name, size, sizedAt, gbMs }) => {
      const changed = compact({ name, size, sized_at: sizedAt, gb_ms: gbMs });
      await runner.write([sql.updateTable("volume").set(changed).where("no", "=", no).compile()]);
    },
    remove: async ({ no, id, ownerNo }, { gbMs, endedAt }) => {
      const ended = { no, id, owner_no: ownerNo, gb_ms: gbMs, ended_at: endedAt };
      await runner.write([
        sql.insertInto("ended_volume").values(ended).compile(),
        sql.deleteFrom("volume").where("no", "=", no).compile(),
      ]);
    },
    existing: async (ids) => {
      const query = sql.selectFrom("volume").select("id").where("id", "in", ids);
      return (await runner.read(query.compile())).map(({ id }) => id);
    },
    all: async () => (await runner.read(sql.selectFrom("volume").selectAll().compile())).map(toVolume),
    some: someRows(runner, "volume", toVolume),
  };
}

const toRegistryAuth = (row: Selectable<Tables["registry_auth"]>): RegistryAuth => ({
  no: row.no,
  id: row.id,
  ownerNo: row.owner_no,
  name: row.name,
  username: row.username,
  password: row.password,
});

export function registryAuthStore(runner: Runner): RegistryAuthStore {
  const { sql } = runner;
  return {
    create: async ({ id, ownerNo, name, username, password }) =>
      toRegistryAuth(
        await writeOne(
          runner,
          sql
            .insertInto("registry_auth")
            .values({ id, owner_no: ownerNo, name, username, password })
            .returningAll()
            .compile(),
        ),
      ),
    save: async ({ no, name, username, password }) => {
      const query = sql.updateTable("registry_auth").set({ name, username, password }).where("no", "=", no);
      await runner.write([query.compile()]);
    },
    remove: async (no) => {
      await runner.write([sql.deleteFrom("registry_auth").where("no", "=", no).compile()]);
    },
    all: async () => (await runner.read(sql.selectFrom("registry_auth").selectAll().compile())).map(toRegistryAuth),
    some: someRows(runner, "registry_auth", toRegistryAuth),
  };
}
