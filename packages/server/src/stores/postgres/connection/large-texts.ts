import { limits } from "../../../limits/index.js";
import type { Connection } from "./connection.js";
import { transaction } from "./transaction.js";

/** A `text[]` with a text too large to be sent at once: copying 20 MB into a message would hold up the event loop. */
export class LargeTexts {
  readonly #values: readonly (string | Uint8Array | null)[];
  /** The array in one message, as PostgreSQL takes it. */
  readonly atOnce: () => Buffer;

  constructor(values: readonly (string | Uint8Array | null)[], atOnce: () => Buffer) {
    this.#values = values;
    this.atOnce = atOnce;
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
  /**
   * Visible to this connection alone and not logged. Dropped with the transaction, since no autovacuum can process it: left
   * in place, it would keep old transaction ids from being frozen.
   */
  table: "CREATE TEMPORARY TABLE text_piece (param bigint, n bigint, k bigint, piece bytea) ON COMMIT DROP",
  insert: "INSERT INTO pg_temp.text_piece VALUES ($1, $2, $3, $4::bytea)",
  /** A parameter's array, joined from its pieces. */
  whole: (param: number) => `(SELECT array_agg(whole ORDER BY n) FROM (
    SELECT n, convert_from(string_agg(piece, ''::bytea ORDER BY k), 'UTF8') AS whole FROM pg_temp.text_piece
    WHERE param = ${param} GROUP BY n) pieces)`,
};

/** A role may be denied temporary tables. */
const isDenied = (error: unknown): boolean => (error as { code?: string }).code === "42501";

/**
 * Runs a statement of which some parameters, written as `$n::text[]`, are {@link LargeTexts}: in one commit with their
 * pieces, or in one message if the role may not make a temporary table.
 */
export async function queryLarge<Row>(
  connection: Connection,
  text: string,
  values: readonly unknown[],
): Promise<Row[]> {
  let mayPiece = false;
  try {
    return await transaction(connection, async () => {
      await connection.query(pieceSql.table);
      mayPiece = true;
      return queryPieced<Row>(connection, text, values);
    });
  } catch (error) {
    if (mayPiece || !isDenied(error)) throw error;
    return connection.query<Row>(
      text,
      values.map((value) => (value instanceof LargeTexts ? value.atOnce() : value)),
    );
  }
}

async function queryPieced<Row>(connection: Connection, text: string, values: readonly unknown[]): Promise<Row[]> {
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
}
