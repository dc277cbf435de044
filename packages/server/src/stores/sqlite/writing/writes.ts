import type { CompiledQuery } from "kysely";
import type { DiskReserve } from "../disk/disk-reserve.js";
import { cached, type Database, type Value } from "../driver.js";
import { jobVerbs } from "../jobs/jobs.js";
import { Tallies } from "../tallies.js";
import { chunkVerbs } from "../texts/chunks.js";
import { textVerbs } from "../texts/stored-texts.js";
import { Transactions, type Verbs } from "./transactions.js";

/** All verbs that write, on the only connection that writes. */
export function writes(db: Database, reserve: Pick<DiskReserve, "release">): Transactions {
  const tallies = new Tallies(db);
  const statement = cached(db);
  const tableVerbs: Verbs = {
    statements: (queries: readonly Pick<CompiledQuery, "sql" | "parameters">[], isGuarded: boolean) => {
      const rows: unknown[][] = [];
      for (const { sql, parameters } of queries) {
        rows.push(statement(sql).all(...(parameters as Value[])));
        if (isGuarded && rows[0]?.length === 0) break;
      }
      return rows;
    },
  };
  return new Transactions(
    db,
    tallies,
    { ...jobVerbs(db, tallies), ...chunkVerbs(db), ...textVerbs(db), ...tableVerbs },
    reserve,
  );
}
