import { limits } from "../../limits/index.js";
import type { Connection } from "./statement.js";
import { transaction } from "./transaction.js";

/** A `text[]` too large to be sent at once: copying 20 MB into a message would hold up the event loop. */
export class LargeTexts {
  readonly #values: readonly (string | Uint8Array | null)[];

  constructor(values: readonly (string | Uint8Array | null)[]) {
    this.#values = values;
  }

  /** The texts in pieces: the number of the text, the number of the piece, and its bytes. A NULL is one piece. */
  *pieces(): Generator<[n: number, k: number, piece: Uint8Array | null]> {
    const size = limits.storedPieceBytes;
    for (const [n, value] of this.#values.entries()) {
      const bytes = typeof value === "string" ? Buffer.from(value) : value;
      if (bytes === null) yield [n, 0, null];
      else
        for (let k = 0; k === 0 || k * size < bytes.length; k++) yield [n, k, bytes.subarray(k * size, (k + 1) * size)];
    }
  }
}

const pieceSql = {
  /** A table of the connection's own, which is not in the log. */
  table:
    "CREATE TEMPORARY TABLE IF NOT EXISTS text_piece (param bigint, n bigint, k bigint, piece bytea) ON COMMIT DELETE ROWS",
  insert: "INSERT INTO pg_temp.text_piece VALUES ($1, $2, $3, $4::bytea)",
  /** A parameter's array, put together again. */
  whole: (param: number) => `(SELECT array_agg(whole ORDER BY n) FROM (
    SELECT n, convert_from(string_agg(piece, ''::bytea ORDER BY k), 'UTF8') AS whole FROM pg_temp.text_piece
    WHERE param = ${param} GROUP BY n) pieces)`,
};

/** Runs a statement of which some parameters, written as `$n::text[]`, are {@link LargeTexts}: in one commit with their pieces. */
export function queryLarge<Row>(connection: Connection, text: string, values: readonly unknown[]): Promise<Row[]> {
  return transaction(connection, async () => {
    await connection.query(pieceSql.table);
    let whole = text;
    for (const [at, value] of values.entries()) {
      if (!(value instanceof LargeTexts)) continue;
      const param = at + 1;
      for (const piece of value.pieces()) await connection.query(pieceSql.insert, [param, ...piece]);
      // the parameter stays, as NULL: a statement must use all of them
      whole = whole.replaceAll(`$${param}::text[]`, `coalesce($${param}::text[], ${pieceSql.whole(param)})`);
    }
    return connection.query<Row>(
      whole,
      values.map((value) => (value instanceof LargeTexts ? null : value)),
    );
  });
}
