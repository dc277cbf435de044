import type { Signal } from "../../clock.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { JobReport } from "../../domain/jobs/job.js";
import { limits } from "../../limits/index.js";
import { turns } from "../../turns.js";
import type { Needs } from "../needs.js";
import { type LentBody, lendStatus, noRoom, nothingLent } from "./lend-status.js";
import { type Asked, describeJobs } from "./read-job.js";

type Listing = Needs<"reader" | "tallies" | "clock" | "registry" | "here" | "texts" | "shares">;

export interface JobQuery {
  readonly status?: JobReport["status"];
  readonly limit: number;
  readonly beforeNo?: number;
}

/** Jobs as JSON texts, and the number before which the next page begins, if there is one. */
export interface JobPage extends LentBody {
  readonly nextNo: number | undefined;
}

/**
 * Jobs newest first, as many as fit in a reply (contract: `/requests`). A page of large texts is read into borrowed
 * memory, a slice at a time; a job whose own texts exceed a page gets a page to itself.
 */
export async function listJobs(needs: Listing, asked: Asked, query: JobQuery, gone: Signal): Promise<JobPage> {
  const { endpoint } = asked;
  const short = await readSlice(needs, endpoint, query, limits.requestsSliceBytes, gone);
  const isAll = short.jobs.length === query.limit || !short.more;
  if (isAll && short.jobs.every(({ unreadBytes }) => unreadBytes === 0)) {
    return pageOf(await textsOf(needs, asked, short.jobs), short, nothingLent);
  }
  // for its strings and the bytes made from them
  const share = await needs.shares.ask(endpoint.ownerNo, 2 * limits.requestsPageBytesMax, gone);
  if (!share) throw noRoom();
  try {
    const { pieces, ...page } = await readPage(needs, asked, query, gone);
    const first = page.jobs[0];
    if (first === undefined || first.unreadBytes === 0) {
      share.keep(bytesOf(pieces));
      return pageOf(pieces, page, { release: share.release, isWanted: () => needs.shares.isWanted });
    }
    share.release();
    const lent = await lendStatus(needs, asked, first, gone);
    return pageOf(lent.pieces, { jobs: [first], more: page.more }, lent);
  } catch (error) {
    share.release();
    throw error;
  }
}

const readSlice = (needs: Listing, endpoint: Endpoint, query: JobQuery, bytesMax: number, gone: Signal) =>
  needs.reader.list({
    ...query,
    endpointNo: endpoint.no,
    ownerNo: endpoint.ownerNo,
    bytesMax,
    gone,
    now: needs.clock.now(),
  });

/**
 * A page and its bytes, read and made a slice at a time, so that other work gets its turn in between. Ends before a job
 * whose texts do not fit any more; that job is alone on its page, with its texts unread.
 */
async function readPage(
  needs: Listing,
  asked: Asked,
  query: JobQuery,
  gone: Signal,
): Promise<Listed & { readonly pieces: Buffer[] }> {
  const { endpoint } = asked;
  const jobs: JobReport[] = [];
  const pieces: Buffer[] = [];
  for (let left = limits.requestsPageBytesMax; ; left = limits.requestsPageBytesMax - bytesOf(pieces)) {
    const limit = query.limit - jobs.length;
    const last = jobs.at(-1);
    const from = { ...query, limit, ...(last ? { beforeNo: last.no } : {}) };
    let slice = await readSlice(needs, endpoint, from, Math.min(left, limits.requestsSliceBytes), gone);
    const isLarge = (slice.jobs[0]?.unreadBytes ?? 0) > 0; // larger than a slice, but perhaps not than what is left
    if (isLarge) slice = await readSlice(needs, endpoint, { ...from, limit: 1 }, left, gone);
    const isTooLarge = (slice.jobs[0]?.unreadBytes ?? 0) > 0;
    if (isTooLarge && jobs.length > 0) return { jobs, pieces, more: true };
    if (turns.isOver) await turns.take([endpoint.ownerNo, endpoint.no]);
    const texts = isTooLarge ? [] : await describeJobs(needs, asked, slice.jobs);
    for (const text of texts) pieces.push(...(pieces.length > 0 ? [comma] : []), Buffer.from(text));
    jobs.push(...slice.jobs);
    const isOver = slice.jobs.length === 0 || isTooLarge || !slice.more || jobs.length >= query.limit;
    if (isOver || gone.aborted || bytesOf(pieces) >= limits.requestsPageBytesMax)
      return { jobs, pieces, more: slice.more };
  }
}

const comma = Buffer.from(",");
const bytesOf = (pieces: readonly Buffer[]): number => pieces.reduce((sum, { length }) => sum + length, 0);

interface Listed {
  readonly jobs: readonly JobReport[];
  readonly more: boolean;
}

/** The jobs' status bodies, separated by commas. */
async function textsOf(needs: Listing, asked: Asked, jobs: readonly JobReport[]): Promise<string[]> {
  const texts = await describeJobs(needs, asked, jobs);
  return texts.flatMap((text, n) => (n === 0 ? [text] : [",", text]));
}

type Lent = Pick<LentBody, "release" | "isWanted">;

const pageOf = (pieces: LentBody["pieces"], { jobs, more }: Listed, { release, isWanted }: Lent): JobPage => ({
  pieces,
  release,
  isWanted,
  nextNo: more ? jobs.at(-1)?.no : undefined,
});
