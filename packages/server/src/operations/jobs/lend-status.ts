import type { Signal } from "../../clock.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { JobReport, JobTexts } from "../../domain/jobs/job.js";
import { statusPieces } from "../../domain/jobs/status-text.js";
import { jobNotFound, Refusal } from "../../errors.js";
import type { Pieced } from "../../json/json.js";
import type { LentTexts } from "../../lines/lent-texts.js";
import type { Share } from "../../lines/shares.js";
import { turns } from "../../turns.js";
import type { Needs } from "../needs.js";
import { type Asked, describeJob } from "./read-job.js";

/** A body in pieces of text or UTF-8. Its memory is on loan until `release`. */
export interface LentBody {
  readonly pieces: readonly (string | Uint8Array)[];
  release(): void;
  /** Whether other requests wait for such memory. */
  isWanted(): boolean;
}

type Lending = Needs<"reader" | "tallies" | "clock" | "registry" | "here" | "texts" | "shares">;

/** The refusal of a request for which no memory became free in time. */
export const noRoom = (what = "this one") =>
  new Refusal("UNAVAILABLE", `Too many large results are being read; ask for ${what} again in a second.`, {
    retryAfterSeconds: 1,
  });

/** Says where a job's result is, for a client that got it through another route. */
const resultOf = (endpoint: Endpoint, job: JobReport) =>
  `the result of job ${job.id} (/v2/${endpoint.id}/status/${job.id})`;

/** The loan for a body that is too small to need one. */
export const nothingLent = { release: () => {}, isWanted: () => false };

/**
 * Lends the large texts of a job that was read without them. Refuses if no memory becomes free in time or the job has
 * expired.
 */
async function lendTexts(
  { texts }: Needs<"texts">,
  endpoint: Endpoint,
  job: JobReport,
  gone: Signal,
): Promise<LentTexts> {
  const lent = await texts.lend(endpoint.ownerNo, job, gone);
  if (lent === "vanished") throw jobNotFound(job.id);
  if (lent === "full") throw noRoom(resultOf(endpoint, job));
  return lent;
}

/** Memory per byte of text: the output, a copy of it in one piece, and one that is moved to a thread to be looked into. */
const copies = 3;

interface WholeJob {
  /** With its error. */
  readonly job: JobReport;
  readonly output: Pieced | undefined;
  readonly share: Share | undefined;
}

/**
 * A job with its texts, for callers who must look into them. The share covers the output and copies of it. A small
 * job needs no share.
 */
export async function wholeJob(
  { reader, shares, clock }: Needs<"reader" | "shares" | "clock">,
  endpoint: Endpoint,
  found: JobReport,
  gone: Signal,
): Promise<WholeJob> {
  for (let bytes = found.unreadBytes; bytes > 0; ) {
    const share = await shares.ask(endpoint.ownerNo, copies * bytes, gone);
    if (!share) throw noRoom(resultOf(endpoint, found));
    try {
      const read = await reader.findTexts({
        endpointNo: endpoint.no,
        jobId: found.id,
        now: clock.now(),
        bytesMax: bytes,
        gone,
      });
      if (!read) throw jobNotFound(found.id);
      if (read.texts) return { ...withTexts(read.job, read.texts), share };
      share.release(); // the texts have grown since
      bytes = read.job.unreadBytes;
      if (bytes === 0) return { ...withOutput(read.job), share: undefined };
    } catch (error) {
      share.release();
      throw error;
    }
  }
  return { ...withOutput(found), share: undefined };
}

function withTexts(job: JobReport, { output, error }: JobTexts): Omit<WholeJob, "share"> {
  const sentence = error && (JSON.parse(Buffer.concat(error).toString()) as string);
  return { job: { ...job, error: sentence, unreadBytes: 0 }, output };
}

const withOutput = (job: JobReport) => ({ job, output: job.output === undefined ? undefined : [job.output] });

/** The status body of a job whose texts were too large to be read with it. */
export async function lendStatus(needs: Lending, asked: Asked, job: JobReport, gone: Signal): Promise<LentBody> {
  const { endpoint } = asked;
  const lent = await lendTexts(needs, endpoint, job, gone);
  try {
    // everybody who has waited for the same texts gets them at one moment
    if (turns.isOver) await turns.take([endpoint.ownerNo, job.id]);
    const pieces = lent.texts
      ? statusPieces(lent.job, lent.texts, needs.clock.now())
      : [await describeJob(needs, asked, lent.job)];
    return { pieces, release: lent.release, isWanted: () => needs.shares.isWanted };
  } catch (error) {
    lent.release();
    throw error;
  }
}
