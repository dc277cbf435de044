import { sql as raw, type Selectable } from "kysely";
import type { Endpoint } from "../../domain/endpoint.js";
import type { Template } from "../../domain/template.js";
import type { Volume } from "../../domain/volume.js";
import type { EndpointStore, TemplateStore, VolumeStore } from "../../store.js";
import { compact, maybe, type Runner, writeOne } from "./runner.js";
import type { Tables } from "./schema.js";

const toEndpoint = (row: Selectable<Tables["endpoint"]>): Endpoint => ({
  no: row.no,
  id: row.id,
  ownerNo: row.owner_no,
  settings: JSON.parse(row.settings),
  version: row.version,
  createdAt: row.created_at,
  deletedAt: maybe(row.deleted_at),
  failedStarts: row.failed_starts,
  failedAt: maybe(row.failed_at),
  verdict: maybe(row.verdict),
});

export function endpointStore(runner: Runner): EndpointStore {
  const { sql } = runner;
  return {
    create: async ({ id, ownerNo, settings, createdAt }) =>
      toEndpoint(
        await writeOne(
          runner,
          sql
            .insertInto("endpoint")
            .values({ id, owner_no: ownerNo, settings: JSON.stringify(settings), version: 1, created_at: createdAt })
            .returningAll()
            .compile(),
        ),
      ),
    save: async (no, settings, release) => {
      const query = sql
        .updateTable("endpoint")
        .set((eb) => ({
          settings: JSON.stringify(settings),
          version: eb("version", "+", release ? 1 : 0),
          failed_starts: 0,
          failed_at: null,
          verdict: null,
        }))
        .where("no", "=", no);
      await runner.write([query.compile()]);
    },
    remove: async (no, now) => {
      await runner.write([sql.updateTable("endpoint").set({ deleted_at: now }).where("no", "=", no).compile()]);
    },
    all: async () => {
      const query = sql
        .selectFrom("endpoint")
        .selectAll()
        .where((eb) =>
          eb.or([
            eb("deleted_at", "is", null),
            eb("no", "in", eb.selectFrom("worker").select("endpoint_no").where("ended_at", "is", null)),
            eb(
              eb
                .selectFrom("tally")
                .select((s) => s(s.fn.sum<number>("waiting"), "+", s.fn.sum<number>("running")).as("left"))
                .whereRef("tally.endpoint_no", "=", "endpoint.no"),
              ">",
              0,
            ),
            eb("no", "in", eb.selectFrom("delivery").select("endpoint_no").where("state", "=", raw.lit("pending"))),
          ]),
        );
      return (await runner.read(query.compile())).map(toEndpoint);
    },
    noteStart: async (no, { failedStarts, failedAt, verdict }) => {
      const note = { failed_starts: failedStarts, failed_at: failedAt ?? null, verdict: verdict ?? null };
      await runner.write([sql.updateTable("endpoint").set(note).where("no", "=", no).compile()]);
    },
  };
}

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
    all: async () => (await runner.read(sql.selectFrom("template").selectAll().compile())).map(toTemplate),
  };
}

const toVolume = (row: Selectable<Tables["volume"]>): Volume => ({
  no: row.no,
  id: row.id,
  ownerNo: row.owner_no,
  name: row.name,
  size: row.size,
  dataCenterId: row.data_center_id,
});

export function volumeStore(runner: Runner): VolumeStore {
  const { sql } = runner;
  return {
    create: async ({ id, ownerNo, name, size, dataCenterId }) =>
      toVolume(
        await writeOne(
          runner,
          sql
            .insertInto("volume")
            .values({ id, owner_no: ownerNo, name, size, data_center_id: dataCenterId })
            .returningAll()
            .compile(),
        ),
      ),
    save: async ({ no, name, size }) => {
      await runner.write([sql.updateTable("volume").set(compact({ name, size })).where("no", "=", no).compile()]);
    },
    remove: async (no) => {
      await runner.write([sql.deleteFrom("volume").where("no", "=", no).compile()]);
    },
    all: async () => (await runner.read(sql.selectFrom("volume").selectAll().compile())).map(toVolume),
  };
}
