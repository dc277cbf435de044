import type { Selectable } from "kysely";
import type { Decision, DecisionStore } from "../../store/index.js";
import { rangeOf } from "./index-range.js";
import type { Runner } from "./runner.js";
import type { Tables } from "./schema.js";

const toDecision = (row: Selectable<Tables["decision"]>): Decision => ({
  fromAt: row.from_at,
  untilAt: row.until_at,
  times: row.times,
  inputs: row.inputs,
  outcome: row.outcome,
  reason: row.reason,
});

export function decisionStore(runner: Runner): DecisionStore {
  const { sql } = runner;
  return {
    record: async ({ endpointNo, decision: { at, inputs, outcome, reason }, ended }) => {
      const values = { endpoint_no: endpointNo, from_at: at, until_at: at, times: 1, inputs, outcome, reason };
      const close = sql
        .updateTable("decision")
        .set({ until_at: ended?.untilAt ?? at, times: ended?.times ?? 1 })
        .where("no", "=", (eb) =>
          eb
            .selectFrom("decision")
            .select((s) => s.fn.max("no").as("no"))
            .where("endpoint_no", "=", endpointNo),
        );
      const append = sql.insertInto("decision").values(values);
      await runner.write([...(ended ? [close.compile()] : []), append.compile()]);
    },
    list: async (endpointNo, limit) => {
      const query = sql
        .selectFrom("decision")
        .selectAll()
        .where(rangeOf(["endpoint_no"], [endpointNo]));
      const sorted = query.orderBy("endpoint_no", "desc").orderBy("no", "desc");
      return (await runner.read(sorted.limit(limit).compile())).map(toDecision);
    },
    forget: async (before, most) => {
      const old = sql
        .selectFrom("decision")
        .select("no")
        .where("until_at", "<=", before)
        .orderBy("until_at")
        .limit(most);
      const [rows] = await runner.write([sql.deleteFrom("decision").where("no", "in", old).returning("no").compile()]);
      return rows?.length ?? 0;
    },
  };
}
