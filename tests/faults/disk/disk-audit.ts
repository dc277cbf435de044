import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { limits } from "../../../packages/server/src/limits/index.js";
import type { Stores } from "../../../packages/server/src/store/index.js";
import { openDatabase } from "../../../packages/server/src/stores/sqlite/driver.js";
import { openSqlite } from "../../../packages/server/src/stores/sqlite/open.js";
import { code } from "../../../packages/server/src/stores/tables/job-state.js";
import type { Acknowledged, KnownJob } from "./acknowledged.js";

/** Writes what is on a disk into a folder, calls `use`, and removes it. */
export async function withFolder<T>(
  files: ReadonlyMap<string, Buffer>,
  use: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-cut-"));
  try {
    mkdirSync(folder, { recursive: true });
    for (const [name, bytes] of files) {
      const path = join(folder, name);
      // The reserve's bytes have no meaning.
      writeFileSync(path, name === "reserve" ? "" : bytes, { mode: 0o600 });
      if (name === "reserve") truncateSync(path, bytes.length);
    }
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Opens a database as the server does, and lists everything acknowledged that is missing or wrong in it. */
export async function auditDisk(folder: string, acknowledged: Acknowledged): Promise<string[]> {
  const path = join(folder, "millrace.db");
  let stores: Stores;
  try {
    stores = openSqlite({ path, onFatal: () => {} });
  } catch (error) {
    return [`cannot be opened: ${error}`];
  }
  const db = openDatabase(path, { readOnly: true });
  try {
    const checked = db.prepare("PRAGMA integrity_check").all();
    const unsound = checked.map((row) => row.integrity_check).filter((word) => word !== "ok");
    const endpoint = (await stores.endpoints.all()).find(({ id }) => id === acknowledged.endpoint);
    if (!endpoint) return acknowledged.endpoint === undefined ? unsound : [...unsound, "the endpoint is gone"];
    const keys = new Set(
      db
        .prepare("SELECT job_id FROM idempotency")
        .all()
        .map((row) => row.job_id),
    );
    const lost: string[] = [];
    for (const [id, known] of acknowledged.jobs) {
      const complaint = await auditJob(stores, endpoint.no, id, known, keys);
      if (complaint) lost.push(`job ${id} ${complaint}`);
    }
    const ended = db
      .prepare(`SELECT count(*) FILTER (WHERE status = ${code.COMPLETED}) AS completed,
          count(*) FILTER (WHERE status = ${code.FAILED}) AS failed FROM job WHERE endpoint_no = ?`)
      .get(endpoint.no);
    const tally = await stores.tallies.tally(endpoint.no);
    const recount = { ...(await stores.tallies.recount(endpoint.no)), ...ended };
    const isCounted = JSON.stringify(tally) === JSON.stringify(recount);
    const miscounted = isCounted ? [] : [`counted ${JSON.stringify(tally)}, there are ${JSON.stringify(recount)}`];
    const apart = [
      ["job_input", "body_text"],
      ["job_output", "output_text"],
    ].filter(
      ([table, text]) =>
        db
          .prepare(
            `SELECT count(*) AS n FROM ${table} WHERE ${text} > 0 AND ${text} NOT IN (SELECT text_no FROM text_piece)`,
          )
          .get().n > 0,
    );
    return [...unsound, ...lost, ...miscounted, ...apart.map(([table]) => `a text of ${table} is gone`)];
  } catch (error) {
    return [`cannot be read: ${error}`];
  } finally {
    db.close();
    await stores.close();
  }
}

/**
 * Describes what is wrong with an acknowledged job; undefined if nothing is. The job may be further along than was
 * acknowledged.
 */
async function auditJob(
  stores: Stores,
  endpointNo: number,
  id: string,
  known: KnownJob,
  keys: ReadonlySet<string>,
): Promise<string | undefined> {
  const job = await stores.reader.find({ endpointNo, jobId: id, now: Date.now() });
  if (!job) return "is gone";
  if (known.key !== undefined && !keys.has(id)) return "has lost its idempotency key";
  if (known.taken && job.starts === 0) return "was never taken";
  const chunks = (await stores.chunks.read({ jobNo: job.no, fromIndex: 0, bytesMax: Number.MAX_SAFE_INTEGER })).map(
    ({ output }) => output,
  );
  if (known.chunks.some((chunk, at) => chunks[at] !== chunk)) return "has lost a chunk";
  if (!known.end) return undefined;
  if (job.status !== known.end.status) return `is ${job.status}, and was ${known.end.status}`;
  const read = await stores.reader.findTexts({
    endpointNo,
    jobId: id,
    now: Date.now(),
    bytesMax: limits.outputBytesHard,
  });
  const large = read?.texts?.output;
  const output = large ? Buffer.concat(large).toString() : job.output;
  return output === known.end.output ? undefined : "has another output";
}
