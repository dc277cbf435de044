import type { Selectable } from "kysely";
import type { Secret } from "../../domain/access/secret.js";
import { limits } from "../../limits/index.js";
import type { SecretStore } from "../../store/index.js";
import { type Runner, writeOne } from "./runner.js";
import type { Tables } from "./schema.js";

const columns = ["no", "id", "owner_no", "name", "description", "created_at"] as const;

const toSecret = (row: Pick<Selectable<Tables["secret"]>, (typeof columns)[number]>): Secret => ({
  no: row.no,
  id: row.id,
  ownerNo: row.owner_no,
  name: row.name,
  description: row.description,
  createdAt: row.created_at,
});

/** Secrets: their values are read only when a worker starts. */
export function secretStore(runner: Runner): SecretStore {
  const { sql } = runner;
  return {
    create: async ({ id, ownerNo, name, description, createdAt, value }) => {
      const values = { id, owner_no: ownerNo, name, description, created_at: createdAt, value };
      return toSecret(await writeOne(runner, sql.insertInto("secret").values(values).returning(columns).compile()));
    },
    change: async (no, fields) => {
      await runner.write([sql.updateTable("secret").set(fields).where("no", "=", no).compile()]);
    },
    remove: async (no) => {
      await runner.write([sql.deleteFrom("secret").where("no", "=", no).compile()]);
    },
    of: async (ownerNo) => {
      const query = sql.selectFrom("secret").select(columns).where("owner_no", "=", ownerNo).orderBy("name");
      return (await runner.read(query.compile())).map(toSecret);
    },
    values: async (ownerNo, names) => {
      if (names.length === 0) return new Map();
      const query = sql.selectFrom("secret").select(["name", "value"]).where("owner_no", "=", ownerNo);
      const rows = await runner.read(query.where("name", "in", names).compile());
      return new Map(rows.map(({ name, value }) => [name, value]));
    },
    noteOfJobs: async (workerNo, values) => {
      if (values.length === 0) return;
      const newest = sql.selectFrom("job_secret").select("no").where("worker_no", "=", workerNo).orderBy("no", "desc");
      const old = newest.offset(limits.heldJobsMax).limit(values.length);
      await runner.write([
        sql
          .insertInto("job_secret")
          .values(values.map((value) => ({ worker_no: workerNo, value })))
          .compile(),
        sql.deleteFrom("job_secret").where("no", "in", old).compile(),
      ]);
    },
    newestOfJobs: async () => {
      const [row] = await runner.read(
        sql
          .selectFrom("job_secret")
          .select((eb) => eb.fn.max("no").as("no"))
          .compile(),
      );
      return Number(row?.no ?? 0);
    },
    ofJobs: (workerNo, after, limit) => {
      const query = sql.selectFrom("job_secret").select(["no", "value"]).where("worker_no", "=", workerNo);
      return runner.read(query.where("no", ">", after).orderBy("no").limit(limit).compile());
    },
  };
}
