import { setImmediate as turn } from "node:timers/promises";
import type { JobTexts } from "../../domain/job.js";
import { limits } from "../../limits.js";
import type { JobReader } from "../../store.js";
import { type JobRow, jobColumnsBounded, joined, toJob } from "../tables/job-row.js";
import type { Database, Statement } from "./driver.js";

/** One job, its texts where they are small. */
export const findSql = `SELECT ${jobColumnsBounded} FROM job j ${joined}
  WHERE j.endpoint_no = ? AND j.id = ? AND j.expires_at > ?`;

/**
 * Reads large texts as bytes, one job at a time and a piece per turn of the event loop: 20 MB read at once take up to
 * 100 ms. On a connection of its own the pieces are read in one transaction, so that no write comes between them; a
 * database in memory has one connection, and is read in one turn.
 */
export function sqliteTextReader(
  db: Database,
  { hasOwnSnapshot }: { hasOwnSnapshot: boolean },
): Pick<JobReader, "findTexts" | "input"> {
  const found = db.prepare(findSql);
  const pieceOf = (text: string, table: string) =>
    db.prepare(
      `SELECT substr(CAST(${text} AS BLOB), ?, ${limits.textPieceBytes}) AS piece FROM ${table} WHERE job_no = ?`,
    );
  const output = pieceOf("output", "job_output");
  const error = pieceOf("error", "job_output");
  const progress = pieceOf("progress", "job_output");
  const input = pieceOf("body", "job_input");

  async function read(statement: Statement, jobNo: number): Promise<Uint8Array[] | undefined> {
    const pieces: Uint8Array[] = [];
    for (let at = 1; ; at += limits.textPieceBytes) {
      const row = statement.get(at, jobNo) as { piece: Uint8Array | null } | undefined;
      if (!row?.piece) return undefined;
      pieces.push(row.piece);
      if (row.piece.length < limits.textPieceBytes) return pieces;
      if (hasOwnSnapshot) await turn();
    }
  }

  async function readJob(endpointNo: number, jobId: string, now: number, bytesMax: number) {
    const row = found.get(endpointNo, jobId, now) as JobRow | undefined;
    if (!row) return undefined;
    const job = toJob(row);
    if (job.unreadBytes === 0 || job.unreadBytes > bytesMax) return { job, texts: undefined };
    const texts: JobTexts = {
      output: await read(output, job.no),
      error: await read(error, job.no),
      progress: await read(progress, job.no),
    };
    return { job, texts };
  }

  let last: Promise<unknown> = Promise.resolve();
  function inSnapshot<T>(work: () => Promise<T>): Promise<T> {
    if (!hasOwnSnapshot) return work();
    const next = last.then(async () => {
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
    findTexts: (...asked) => inSnapshot(() => readJob(...asked)),
    input: (jobNo) => inSnapshot(() => read(input, jobNo)),
  };
}
