import { type Clock, PlainSignal, type Signal } from "../clock.js";
import { isFinal, type JobReport, type JobTexts } from "../domain/jobs/job.js";
import { limits } from "../limits/index.js";
import type { JobReader } from "../store/index.js";
import { type Share, Shares } from "./shares.js";

/**
 * A job as it was when its texts were read; `texts` is undefined if they have become small and are in the job itself.
 */
interface Read {
  readonly job: JobReport;
  readonly texts: JobTexts | undefined;
}

/** A job's large texts in memory that is on loan until `release`. */
export interface LentTexts extends Read {
  release(): void;
}

/** `full`: no memory became free in time. `vanished`: the job has expired. */
export type Unlent = "full" | "vanished";

interface Copy {
  readers: number;
  readonly read: Promise<Read | Unlent>;
  readonly abandon: () => void;
}

/** Reads jobs' large texts into borrowed memory. All readers of one final result share a copy. */
export class TextLender {
  readonly #reader: Pick<JobReader, "findTexts">;
  readonly #shares: Shares;
  readonly #clock: Pick<Clock, "now">;
  readonly #copies = new Map<string, Copy>();

  constructor(reader: Pick<JobReader, "findTexts">, shares: Shares, clock: Pick<Clock, "now">) {
    this.#reader = reader;
    this.#shares = shares;
    this.#clock = clock;
  }

  /** Lends the texts of a job that was read without them. Also resolves to `full` if the caller goes away. */
  async lend(ownerNo: number, job: JobReport, gone: Signal): Promise<LentTexts | Unlent> {
    if (gone.aborted) return "full";
    const key = copyKey(job);
    const known = key === undefined ? undefined : this.#copies.get(key);
    const copy = known ?? this.#copyOf(ownerNo, job);
    if (key !== undefined) this.#copies.set(key, copy);
    copy.readers++;
    let isReleased = false;
    const release = () => {
      if (isReleased) return;
      isReleased = true;
      gone.removeEventListener("abort", release);
      if (--copy.readers > 0) return;
      if (key !== undefined && this.#copies.get(key) === copy) this.#copies.delete(key);
      copy.abandon();
    };
    gone.addEventListener("abort", release);
    try {
      const read = await copy.read;
      if (typeof read !== "string") return { ...read, release };
      release();
      return read;
    } catch (error) {
      release();
      throw error;
    }
  }

  #copyOf(ownerNo: number, job: JobReport): Copy {
    const gone = new PlainSignal();
    let share: Share | undefined;
    let isReading = true;
    const find = async (): Promise<Read | Unlent> => {
      for (let bytes = job.unreadBytes; ; ) {
        share = await this.#shares.ask(ownerNo, bytes, gone);
        if (!share || gone.aborted) return "full";
        const found = await this.#reader.findTexts({
          endpointNo: job.endpointNo,
          jobId: job.id,
          now: this.#clock.now(),
          bytesMax: bytes,
          gone,
        });
        if (!found) return "vanished";
        if (found.texts || found.job.unreadBytes === 0) return found;
        share.release(); // the texts have grown since, so they need a larger share
        bytes = found.job.unreadBytes;
      }
    };
    const read = async () => {
      try {
        return await find();
      } finally {
        isReading = false;
        if (gone.aborted) share?.release();
      }
    };
    const abandon = () => {
      gone.abort();
      // a read still under way keeps its memory until it ends
      if (!isReading) share?.release();
    };
    return { readers: 0, read: read(), abandon };
  }
}

/** A key under which the texts never change; undefined for a job that is not final. */
const copyKey = ({ endpointNo, id, starts, finishedAt, status }: JobReport): string | undefined =>
  isFinal(status) ? `${endpointNo}/${id}/${starts}/${finishedAt}` : undefined;

/** The budgets of lent memory. They are separate, so that downloads hold up neither streams nor workers. */
export interface Lending {
  /** Results and lists. */
  readonly shares: Shares;
  /** Streams and logs. */
  readonly streamShares: Shares;
  /** Inputs that workers take. */
  readonly inputShares: Shares;
  /** Jobs' large texts, charged to `shares`. */
  readonly texts: TextLender;
}

/** Opens the budgets of lent memory. */
export function lending(clock: Clock, reader: Pick<JobReader, "findTexts">): Lending {
  const account = (bytesMax: number) =>
    new Shares({ clock, bytesMax, ownerBytesMax: limits.lentOwnerShare * bytesMax, waitMs: limits.lentWaitMs });
  const shares = account(limits.lentBytesMax);
  return {
    shares,
    streamShares: account(limits.lentStreamBytesMax),
    inputShares: account(limits.lentInputBytesMax),
    texts: new TextLender(reader, shares, clock),
  };
}
