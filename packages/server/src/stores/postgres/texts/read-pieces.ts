import { setImmediate as turn } from "node:timers/promises";
import { limits } from "../../../limits/index.js";

const size = limits.textRowBytes;

/**
 * SQL that reads a large text as rows of pieces. They are pieces of its bytes: to find a piece of characters,
 * PostgreSQL would walk through all characters before it. Its protocol sends bytes fastest as base64.
 */
export const readPieces = {
  /** A text's bytes. Should be in a materialized query, which fetches the text once, instead of once for each piece. */
  bytes: (text: string) => `convert_to(${text}, 'UTF8')`,
  numbers: (bytes: string) => `generate_series(0, (octet_length(${bytes}) - 1) / ${size})`,
  piece: (bytes: string, n: string) => `encode(substr(${bytes}, ${n} * ${size} + 1, ${size}), 'base64')`,
};

/** A row of such SQL. */
export interface PieceRow {
  readonly n: number;
  readonly piece: string;
}

/** A text's bytes from the rows of its pieces, in any order; other work gets its turn in between. */
export async function bytesOfPieces(rows: readonly PieceRow[]): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  for (const [at, { n, piece }] of rows.entries()) {
    if (at > 0 && at % rowsPerTurn === 0) await turn();
    pieces[n] = Buffer.from(piece, "base64");
  }
  return pieces;
}

const rowsPerTurn = limits.textReadBytesPerTurn / size;
