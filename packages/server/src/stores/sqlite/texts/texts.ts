import { setImmediate as turn } from "node:timers/promises";
import type { JobTexts } from "../../../domain/jobs/job.js";
import { limits } from "../../../limits/index.js";
import type { JobReader, TextsQuery } from "../../../store/index.js";
import { type JobRow, joined, toJob } from "../../tables/job-row.js";
import type { Database, Statement } from "../driver.js";
import { jobSql } from "./stored-texts.js";

/** One job, with its texts if they are small. */
export const findSql = `SELECT ${jobSql.jobColumnsBounded} FROM job j ${joined}
  WHERE j.endpoint_no = ? AND j.id = ? AND j.expires_at > ?`;

/**
 * Reads large texts as bytes, one job at a time and one piece per turn of the event loop: reading 20 MB at once takes
 * up to 100 ms. On a connection of its own the pieces are read in one transaction, so that no write comes between them;
 * a database in memory has only one connection, and is read in one turn.
 */
export function sqliteTextReader(readDb: Database, textDb?: Database): Pick<JobReader, "findTexts" | "input"> {
  const hasOwnSnapshot = textDb !== undefined;
  const db = textDb ?? readDb;
  const found = db.prepare(findSql);
  const pieceOf = (text: string, table = "job_output", from = db) => {
    const inPlace = `substr(CAST(${text} AS BLOB), ?1 * ${limits.storedPieceBytes} + 1, ${limits.storedPieceBytes})`;
    const inPieces = `(SELECT piece FROM text_piece WHERE text_no = ${text}_text AND n = ?1)`;
    const piece = text === "error" ? inPlace : `CASE WHEN ${text}_text IS NULL THEN ${inPlace} ELSE ${inPieces} END`;
    const isPieced = text === "error" ? "0" : `${text}_text IS NOT NULL`;
    return from.prepare(`SELECT ${piece} AS piece, ${isPieced} AS is_pieced FROM ${table} WHERE job_no = ?2`);
  };
  const [output, error, progress] = [pieceOf("output"), pieceOf("error"), pieceOf("progress")];
  // an input never changes, so it needs no transaction and does not wait for results
  const input = pieceOf("body", "job_input", readDb);

  async function read(
    statement: Statement,
    jobNo: number,
    gone?: { readonly aborted: boolean },
  ): Promise<Uint8Array[] | undefined> {
    const pieces: Uint8Array[] = [];
    for (let n = 0; ; n++) {
      const row = statement.get(n, jobNo) as { piece: Uint8Array | null; is_pieced: 0 | 1 } | undefined;
      if (!row || (n === 0 && row.piece === null)) return undefined;
      if (row.piece) pieces.push(row.piece);
      // a piece has the size that was the limit when it was stored
      if (!row.piece || (!row.is_pieced && row.piece.length < limits.storedPieceBytes)) return pieces;
      if (hasOwnSnapshot) await turn();
      if (gone?.aborted) return undefined;
    }
  }

  async function readJob({ endpointNo, jobId, now, bytesMax, gone }: TextsQuery) {
    if (gone?.aborted) return undefined;
    const row = found.get(endpointNo, jobId, now) as JobRow | undefined;
    if (!row) return undefined;
    const job = toJob(row);
    if (job.unreadBytes === 0 || job.unreadBytes > bytesMax) return { job, texts: undefined };
    const texts: JobTexts = {
      output: await read(output, job.no, gone),
      error: await read(error, job.no, gone),
      progress: await read(progress, job.no, gone),
    };
    return { job, texts };
  }

  let last: Promise<unknown> = Promise.resolve();
  function inSnapshot<T>(work: () => Promise<T>): Promise<T> {
    if (!hasOwnSnapshot) return work();
    const next = last.then(async () => {
      await turn();
      db.exec("BEGIN");
      try {
        return await work();
      } finally {
        db.exec("COMMIT");
      }
    });
    last = next.catch(() => {});
    return next;
  }

  return {
    findTexts: (query) => inSnapshot(() => readJob(query)),
    input: (jobNo) => read(input, jobNo),
  };
}
