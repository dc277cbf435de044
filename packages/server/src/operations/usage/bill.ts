import type { ApiKey } from "../../domain/access/key.js";
import { type Bucket, type BucketSize, bucketsOf, wallClock } from "../../domain/usage/bucket.js";
import { cover, hourMs, type Stretch } from "../../domain/usage/meter.js";
import { shownAmount } from "../../domain/usage/price.js";
import { invalid } from "../../errors.js";
import { limits } from "../../limits/index.js";
import type { MeteredKind, UsageSum } from "../../store/index.js";
import { turns } from "../../turns.js";
import { seesMore } from "../access/visible.js";
import { timeIn } from "../fields.js";
import type { Needs } from "../needs.js";

/** What a caller asks of a bill, as it was sent. */
export interface BillQuery {
  readonly startTime?: string | undefined;
  readonly endTime?: string | undefined;
  readonly bucketSize?: BucketSize | undefined;
  /** The last so many buckets, the present one included, instead of times. */
  readonly lastN?: number | undefined;
  /** An IANA time zone, in which days, weeks, months and years begin; UTC by default. */
  readonly timeZone?: string | undefined;
}

/** The time that a bill is for, in whole buckets. */
export interface Period {
  readonly size: BucketSize;
  readonly buckets: readonly Bucket[];
}

/** The period that a caller asks for: the last 30 days unless told otherwise. Refuses times that make no sense. */
export async function periodOf(
  { clock }: Needs<"clock">,
  { ownerNo }: Pick<ApiKey, "ownerNo">,
  query: BillQuery,
): Promise<Period> {
  const { bucketSize: size = "day", timeZone = "UTC", lastN } = query;
  const now = clock.now();
  if (lastN !== undefined && (query.startTime !== undefined || query.endTime !== undefined))
    throw invalid("Send either 'lastN', or 'startTime' and 'endTime'.");
  const to = query.endTime === undefined ? now : timeIn("endTime", query.endTime);
  const from = query.startTime === undefined ? to - spanOf(size, lastN) : timeIn("startTime", query.startTime);
  if (from > to) throw invalid("'startTime' must not be after 'endTime'.");
  knowsZone(timeZone);
  const found: Bucket[] = [];
  for (const bucket of bucketsOf({ from, to: Math.max(to, from + 1), size, timeZone })) {
    if (found.length === limits.billBucketsMax) {
      throw invalid(
        `A bill has ${limits.billBucketsMax} buckets at most: send a later 'startTime' or a longer 'bucketSize'.`,
      );
    }
    found.push(bucket);
    if (turns.isOver) await turns.take([ownerNo]);
  }
  return { size, buckets: lastN === undefined ? found : found.slice(-lastN) };
}

/** How far back a bill goes that names no beginning; more than `lastN` buckets, which are counted from the end. */
function spanOf(size: BucketSize, lastN: number | undefined): number {
  if (lastN === undefined) return limits.billRangeMsDefault;
  const days = { hour: 1 / 24, day: 1, week: 7, month: 31, year: 366 }[size];
  return Math.ceil(lastN * days * 24) * hourMs;
}

function knowsZone(timeZone: string): void {
  try {
    wallClock(timeZone);
  } catch {
    throw invalid(`'${timeZone.slice(0, 80)}' in timeZone is not a time zone such as Europe/Berlin.`);
  }
}

/** What is added up in a bill. */
export interface BillOf {
  readonly kind: MeteredKind;
  /** One record for each resource in each bucket, or one for each GPU type, or one for all. */
  readonly by: "resource" | "gpuType" | "all";
  /** Only this resource. */
  readonly resource?: string | undefined;
  /** Only resources and GPU types that pass. */
  readonly isWanted?: ((sum: UsageSum) => boolean) | undefined;
}

/** A record of a bill. Amounts of money are in units of the currency. */
export interface BillRecord {
  readonly from: number;
  readonly to: number;
  readonly resource: string;
  readonly gpuType: string;
  /** Milliseconds of a worker or pod, GB times milliseconds of a volume. */
  readonly amount: number;
  readonly gpuCost: number;
  readonly cpuCost: number;
  readonly diskCost: number;
}

/** The caller's own bill; keys of chosen endpoints see none. Buckets without usage have no record. */
export async function bill(
  { usage }: Needs<"usage">,
  caller: ApiKey,
  { buckets }: Period,
  { kind, by, resource, isWanted }: BillOf,
): Promise<BillRecord[]> {
  seesMore(caller, "bills");
  const records: BillRecord[] = [];
  // a filter looks at resources one by one
  const byResource = by === "resource" || isWanted !== undefined;
  const most = byResource && resource === undefined ? limits.billStretchesOfAll : limits.billStretches;
  for (const stretches of chunksOf(buckets, most)) {
    if (turns.isOver) await turns.take([caller.ownerNo]);
    const query = { kind, ownerNo: caller.ownerNo, stretches, byResource, resource };
    const sums = await usage.sums({ ...query, limit: limits.billRecordsMax });
    if (sums.length > limits.billRecordsMax) throw tooMany();
    records.push(...added(isWanted ? sums.filter(isWanted) : sums, buckets, by));
    if (records.length > limits.billRecordsMax) throw tooMany();
  }
  return records;
}

/** The stretches of buckets, about as many at a time as one statement should add up; those of a bucket stay together. */
function* chunksOf(buckets: readonly Bucket[], most: number) {
  let chunk: (Stretch & { readonly bucket: number })[] = [];
  for (const [bucket, { from, to }] of buckets.entries()) {
    if (chunk.length >= most) {
      yield chunk;
      chunk = [];
    }
    chunk.push(...cover(from, to).map((stretch) => ({ ...stretch, bucket })));
  }
  if (chunk.length > 0) yield chunk;
}

const tooMany = () =>
  invalid(
    `The bill has more than ${limits.billRecordsMax} records: ask for a shorter time, longer buckets or another grouping.`,
  );

/** Adds up what belongs to one record. Costs become units of the currency. */
function added(sums: readonly UsageSum[], buckets: readonly Bucket[], by: BillOf["by"]): BillRecord[] {
  const groups = new Map<string, UsageSum>();
  for (const sum of sums) {
    const group = `${sum.bucket} ${by === "resource" ? sum.resource : by === "gpuType" ? sum.gpuType : ""}`;
    const before = groups.get(group);
    groups.set(group, {
      bucket: sum.bucket,
      resource: by === "resource" ? sum.resource : "",
      gpuType: by === "gpuType" ? sum.gpuType : "",
      amount: (before?.amount ?? 0) + sum.amount,
      gpuCost: (before?.gpuCost ?? 0) + sum.gpuCost,
      cpuCost: (before?.cpuCost ?? 0) + sum.cpuCost,
      diskCost: (before?.diskCost ?? 0) + sum.diskCost,
    });
  }
  return [...groups.values()].map(({ bucket, gpuCost, cpuCost, diskCost, ...rest }) => ({
    ...(buckets[bucket] as Bucket),
    ...rest,
    gpuCost: shownAmount(gpuCost),
    cpuCost: shownAmount(cpuCost),
    diskCost: shownAmount(diskCost),
  }));
}

/** What a record costs in all. */
export const totalOf = ({ gpuCost, cpuCost, diskCost }: Pick<BillRecord, "gpuCost" | "cpuCost" | "diskCost">): number =>
  rounded(gpuCost + cpuCost + diskCost);

/** Sums of amounts, without the noise of binary fractions. */
export const rounded = (amount: number): number => Math.round(amount * 1e9) / 1e9;
