import type { Signal } from "../clock.js";
import type { Endpoint } from "../domain/endpoint.js";
import type { JobReport } from "../domain/job.js";
import { statusPieces } from "../domain/status-text.js";
import { jobNotFound, Refusal } from "../errors.js";
import type { LentTexts } from "../lines/lent-texts.js";
import type { Needs } from "./needs.js";
import { describeJob } from "./read-job.js";

/** A body in pieces of text or UTF-8, whose memory is lent until `release`. */
export interface LentBody {
  readonly pieces: readonly (string | Uint8Array)[];
  release(): void;
}

type Lending = Needs<"reader" | "tallies" | "clock" | "registry" | "place" | "texts">;

/** The refusal of a request that found no room for what it asks for. */
export const noRoom = () =>
  new Refusal("UNAVAILABLE", "Too many large results are being read; ask for this one again in a second.", {
    retryAfterSeconds: 1,
  });

/** Lends the large texts of a job that was found without them. Refuses where no room comes in time, or the job has expired. */
export async function lendTexts(
  { texts }: Needs<"texts">,
  endpoint: Endpoint,
  job: JobReport,
  gone: Signal,
): Promise<LentTexts> {
  const lent = await texts.lend(endpoint.ownerNo, job, gone);
  if (lent === "vanished") throw jobNotFound(job.id);
  if (lent === "full") throw noRoom();
  return lent;
}

/**
 * A job with its texts as strings, for those who must look into them. What they take until `release` is lent; a small job
 * takes nothing.
 */
export async function wholeJob(
  needs: Needs<"texts">,
  endpoint: Endpoint,
  found: JobReport,
  gone: Signal,
): Promise<{ job: JobReport; release: () => void }> {
  if (found.unreadBytes === 0) return { job: found, release: () => {} };
  const { job, texts, release } = await lendTexts(needs, endpoint, found, gone);
  if (!texts) return { job, release };
  const text = (pieces: readonly Uint8Array[] | undefined) => pieces && Buffer.concat(pieces).toString();
  const error = text(texts.error);
  return {
    job: {
      ...job,
      output: text(texts.output),
      error: error === undefined ? undefined : (JSON.parse(error) as string),
      progress: text(texts.progress),
      unreadBytes: 0,
    },
    release,
  };
}

/** The status body of a job whose texts are too large to have been read with it. */
export async function lendStatus(needs: Lending, endpoint: Endpoint, job: JobReport, gone: Signal): Promise<LentBody> {
  const lent = await lendTexts(needs, endpoint, job, gone);
  try {
    const pieces = lent.texts
      ? statusPieces(lent.job, lent.texts, needs.clock.now())
      : [await describeJob(needs, endpoint, lent.job)];
    return { pieces, release: lent.release };
  } catch (error) {
    lent.release();
    throw error;
  }
}
