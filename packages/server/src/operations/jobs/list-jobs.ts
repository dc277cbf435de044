import type { Signal } from "../../clock.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { JobReport } from "../../domain/jobs/job.js";
import { limits } from "../../limits/index.js";
import type { Needs } from "../needs.js";
import { type LentBody, lendStatus, noRoom, nothingLent } from "./lend-status.js";
import { describeJobs } from "./read-job.js";

type Listing = Needs<"reader" | "tallies" | "clock" | "registry" | "here" | "texts" | "shares">;

export interface JobQuery {
  readonly status?: JobReport["status"];
  readonly limit: number;
  readonly beforeNo?: number;
}

/** Jobs as JSON texts, and the cursor of the next page if there is one. */
export interface JobPage extends LentBody {
  readonly nextCursor: string | undefined;
}

/**
 * Jobs newest first, as many as fit in a reply (contract: `/requests`). A page of large texts is read into borrowed
 * memory; a job whose own texts exceed a page gets a page to itself.
 */
export async function listJobs(needs: Listing, endpoint: Endpoint, query: JobQuery, gone: Signal): Promise<JobPage> {
  const list = (bytesMax: number) => needs.reader.list(endpoint.no, { ...query, bytesMax, gone }, needs.clock.now());
  const short = await list(limits.requestsShortBytesMax);
  const isAll = short.jobs.length === query.limit || !short.more;
  if (isAll && short.jobs.every(({ unreadBytes }) => unreadBytes === 0)) {
    return pageOf(await textsOf(needs, endpoint, short.jobs), short, nothingLent);
  }
  // for its strings and the bytes made from them
  const share = await needs.shares.ask(endpoint.ownerNo, 2 * limits.requestsPageBytesMax, gone);
  if (!share) throw noRoom();
  try {
    const page = await list(limits.requestsPageBytesMax);
    const first = page.jobs[0];
    if (first === undefined || first.unreadBytes === 0) {
      const texts = await textsOf(needs, endpoint, page.jobs);
      const pieces = texts.map((text) => Buffer.from(text));
      share.keep(pieces.reduce((sum, { length }) => sum + length, 0));
      return pageOf(pieces, page, { release: share.release, isWanted: () => needs.shares.isWanted });
    }
    share.release();
    const lent = await lendStatus(needs, endpoint, first, gone);
    return pageOf(lent.pieces, { jobs: [first], more: page.more }, lent);
  } catch (error) {
    share.release();
    throw error;
  }
}

interface Listed {
  readonly jobs: readonly JobReport[];
  readonly more: boolean;
}

/** The jobs' status bodies, separated by commas. */
async function textsOf(needs: Listing, endpoint: Endpoint, jobs: readonly JobReport[]): Promise<string[]> {
  const texts = await describeJobs(needs, endpoint, jobs);
  return texts.flatMap((text, n) => (n === 0 ? [text] : [",", text]));
}

type Lent = Pick<LentBody, "release" | "isWanted">;

const pageOf = (pieces: LentBody["pieces"], { jobs, more }: Listed, { release, isWanted }: Lent): JobPage => ({
  pieces,
  release,
  isWanted,
  nextCursor: more ? jobs.at(-1)?.no.toString(36) : undefined,
});
