import type { JsonText } from "../../../domain/jobs/job.js";
import { limits } from "../../../limits/index.js";
import { jobTextSql, type TextColumns } from "../../tables/job-row.js";
import type { Database, Value } from "../driver.js";
import type { Verbs } from "../writing/transactions.js";

/** The number of a text whose pieces are stored before the row that refers to it. */
export interface PiecedText {
  readonly textNo: number;
}

/** A text on its way to its row: a small one is the text itself. */
export type StorableText = JsonText | PiecedText;

/** One write of a large text. */
export interface TextPiece {
  readonly textNo: number;
  readonly n: number;
  /** A view of the text's bytes. */
  readonly bytes: Uint8Array;
}

/**
 * Cuts large texts into pieces: a text of 20 MB written at once would delay every other write by a tenth of a second.
 */
export class TextCutter {
  #nextNo: number;

  constructor(db: Database) {
    this.#nextNo = db.prepare("SELECT coalesce(max(text_no), 0) + 1 AS no FROM text_piece").get().no;
  }

  /** The text as its row stores it; a text longer than `inPlaceMax` is cut, and its pieces are added to `pieces`. */
  cut(json: JsonText, pieces: TextPiece[], inPlaceMax: number = limits.storedPieceBytes): StorableText {
    const size = limits.storedPieceBytes;
    if (json.length <= inPlaceMax) return json;
    const bytes = typeof json === "string" ? Buffer.from(json) : json;
    const textNo = this.#nextNo++;
    for (let n = 0; n * size < bytes.length; n++)
      pieces.push({ textNo, n, bytes: bytes.subarray(n * size, (n + 1) * size) });
    return { textNo };
  }
}

const isPieced = (text: StorableText): text is PiecedText => typeof text === "object" && "textNo" in text;

/** The values of a text's two columns: the text, empty if it is in pieces, and the number of its pieces. */
export const textValues = (text: StorableText | undefined): [text: Value, textNo: Value] => {
  if (text === undefined) return [null, null];
  return isPieced(text) ? ["", text.textNo] : [text, null];
};

/** Columns, as queries name them, with a second column `…_text` for the number of a text in pieces. */
const pieced = new Set(["i.body", "o.output", "o.progress", "c.output"]);

const inPlaceOr = (column: string, inPlace: string, ofPieces: string): string =>
  `CASE WHEN ${column}_text IS NULL THEN ${inPlace}
    ELSE (SELECT ${ofPieces} FROM text_piece WHERE text_no = ${column}_text) END`;

/** SQL for the text of such a column, joined if it is in pieces. */
export const wholeText = (column: string): string =>
  inPlaceOr(column, column, "group_concat(CAST(piece AS TEXT), '' ORDER BY n)");

export const textsInPieces: TextColumns = {
  whole: (column) => (pieced.has(column) ? wholeText(column) : column),
  bytes: (column) => {
    const inPlace = `octet_length(${column})`;
    return pieced.has(column) ? inPlaceOr(column, inPlace, "sum(octet_length(piece))") : inPlace;
  },
};

/** The SQL that reads jobs with their texts. */
export const jobSql = jobTextSql(textsInPieces);

/**
 * The writes of texts in pieces. A text whose row is not stored yet is listed as staged, so that it can be deleted if
 * that row never comes.
 */
export function textVerbs(db: Database): Verbs {
  const stage = db.prepare("INSERT OR IGNORE INTO staged_text (no) VALUES (?)");
  const insert = db.prepare("INSERT INTO text_piece (text_no, n, piece) VALUES (?, ?, ?)");
  const unstage = db.prepare("DELETE FROM staged_text WHERE no = ? RETURNING no");
  const drop = db.prepare("DELETE FROM text_piece WHERE text_no = ?");
  return {
    storePiece: ({ textNo, n, bytes }: TextPiece) => {
      stage.run(textNo); // with each piece: one before it may have failed
      insert.run(textNo, n, bytes);
    },
    /** Deletes the texts that no row refers to. */
    dropStaged: (textNos: readonly number[]) => {
      for (const no of textNos) if (unstage.get(no)) drop.run(no);
    },
  };
}

/** Texts that a crash left without rows. */
export const stagedTexts = (db: Database): number[] =>
  db
    .prepare("SELECT no FROM staged_text")
    .all()
    .map(({ no }) => no);
