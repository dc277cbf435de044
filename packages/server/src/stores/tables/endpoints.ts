import { sql as raw, type Selectable, type SelectQueryBuilder } from "kysely";
import { type Endpoint, type EndpointSettings, settingsOfDeleted } from "../../domain/endpoints/endpoint.js";
import type { Release } from "../../domain/endpoints/release.js";
import { limits } from "../../limits/index.js";
import type { EndpointStore, NewRelease } from "../../store/index.js";
import { allRows, someRows } from "./all-rows.js";
import { maybe, type Runner } from "./runner.js";
import type { Tables } from "./schema.js";

function settingsOf({ settings, deleted_at: deletedAt }: Selectable<Tables["endpoint"]>): EndpointSettings {
  const parsed: EndpointSettings = JSON.parse(settings);
  return deletedAt === null ? parsed : settingsOfDeleted(parsed);
}

const toEndpoint = (row: Selectable<Tables["endpoint"]>): Endpoint => ({
  no: row.no,
  id: row.id,
  ownerNo: row.owner_no,
  settings: settingsOf(row),
  version: row.version,
  createdAt: row.created_at,
  deletedAt: maybe(row.deleted_at),
  provenVersion: row.proven_version,
  heldVersion: maybe(row.held_version),
  failedStarts: row.failed_starts,
  failedAt: maybe(row.failed_at),
  verdict: maybe(row.verdict),
});

const toRelease = (row: Selectable<Tables["version"]>): Release => ({
  n: row.n,
  madeAt: row.made_at,
  settings: JSON.parse(row.settings),
  template: JSON.parse(row.template),
  rollbackOf: maybe(row.rollback_of),
  provenAt: maybe(row.proven_at),
  heldAt: maybe(row.held_at),
  verdict: maybe(row.verdict),
});

/**
 * Endpoints that are not deleted, or still have workers, jobs or webhooks: ended deliveries are listed for a while. Of
 * those one is looked up in the index for each endpoint, as an EXISTS might read all of them.
 */
const isNeeded = `deleted_at IS NULL
  OR no IN (SELECT endpoint_no FROM worker WHERE ended_at IS NULL)
  OR (SELECT sum(waiting) + sum(running) FROM tally WHERE tally.endpoint_no = endpoint.no) > 0
  OR (SELECT d.no FROM delivery d
    WHERE (d.endpoint_no, d.no) >= (endpoint.no, 0) AND (d.endpoint_no, d.no) < (endpoint.no + 1, 0)
    ORDER BY d.endpoint_no, d.no LIMIT 1) IS NOT NULL`;

export function endpointStore(runner: Runner): EndpointStore {
  const { sql } = runner;
  /** Stores what the present version of an endpoint is made of. */
  const frozen = (endpoint: SelectQueryBuilder<Tables, "endpoint", object>, release: NewRelease) =>
    sql
      .insertInto("version")
      .columns(["endpoint_no", "n", "made_at", "settings", "template", "rollback_of"])
      .expression(
        endpoint.select((s) => [
          "no",
          "version",
          s.val(release.madeAt).as("made_at"),
          "settings",
          s.val(JSON.stringify(release.template)).as("template"),
          s.val(release.rollbackOf ?? null).as("rollback_of"),
        ]),
      )
      .compile();
  return {
    create: async ({ id, ownerNo, settings, template, createdAt }) => {
      const values = { id, owner_no: ownerNo, settings: JSON.stringify(settings), version: 1, created_at: createdAt };
      const [[row]] = (await runner.write([
        sql.insertInto("endpoint").values(values).returningAll().compile(),
        frozen(sql.selectFrom("endpoint").where("id", "=", id), { template, madeAt: createdAt }),
      ])) as [[Selectable<Tables["endpoint"]>]];
      return toEndpoint(row);
    },
    save: async (no, settings, release) => {
      const query = sql
        .updateTable("endpoint")
        .set((eb) => ({
          settings: JSON.stringify(settings),
          version: eb("version", "+", release ? 1 : 0),
          failed_starts: 0,
          failed_at: null,
          verdict: null,
          held_version: null,
        }))
        .where("no", "=", no);
      const present = sql.selectFrom("endpoint").where("no", "=", no);
      const old = sql
        .deleteFrom("version")
        .where("endpoint_no", "=", no)
        .where("n", "<>", present.select("proven_version"))
        .where(
          "n",
          "<=",
          present.select((s) => s("version", "-", raw.lit(limits.releasesKept)).as("n")),
        );
      const more = release ? [frozen(present, release), old.compile()] : [];
      await runner.write([query.compile(), ...more]);
    },
    remove: async (no, now) => {
      await runner.write([sql.updateTable("endpoint").set({ deleted_at: now }).where("no", "=", no).compile()]);
    },
    all: allRows(runner, "endpoint", isNeeded, toEndpoint),
    needed: async (nos) => {
      const query = raw<{
        no: number;
      }>`SELECT no FROM endpoint WHERE no IN (${raw.join(nos)}) AND (${raw.raw(isNeeded)})`;
      return nos.length === 0 ? [] : (await runner.read(query.compile(sql))).map(({ no }) => no);
    },
    some: someRows(runner, "endpoint", toEndpoint),
    existing: async (ids) => {
      const query = sql.selectFrom("endpoint").select("id").where("id", "in", ids).where("deleted_at", "is", null);
      return (await runner.read(query.compile())).map(({ id }) => id);
    },
    noteStart: async (no, { present, tried, failedStarts, at, verdict, isHeld }) => {
      const isUp = failedStarts === 0;
      const pause = isHeld ? { failed_starts: 0, failed_at: null } : { failed_starts: failedStarts, failed_at: at };
      const up = { failed_starts: 0, failed_at: null, verdict: null, proven_version: tried };
      const failed = { ...pause, verdict: verdict ?? null, ...(isHeld ? { held_version: tried } : {}) };
      const fate = sql.updateTable("version").where("endpoint_no", "=", no).where("n", "=", tried);
      const proof = { proven_at: at, held_at: null, verdict: null };
      await runner.write([
        sql
          .updateTable("endpoint")
          .set(isUp ? up : failed)
          .where("no", "=", no)
          .where("version", "=", present)
          .compile(),
        ...(isUp ? [fate.where("proven_at", "is", null).set(proof).compile()] : []),
        ...(isHeld ? [fate.set({ held_at: at, verdict: verdict ?? null }).compile()] : []),
      ]);
    },
    release: async (no, n) => {
      const query = sql.selectFrom("version").selectAll().where("endpoint_no", "=", no).where("n", "=", n);
      const [row] = await runner.read(query.compile());
      return row && toRelease(row);
    },
  };
}
