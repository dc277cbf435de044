import type { Stretch } from "../domain/usage/meter.js";
import type { Prices } from "../domain/usage/price.js";

/** What is metered: workers of endpoints and of pods, and network volumes. */
export type MeteredKind = "endpoint" | "pod" | "volume";

/** How much of something has been banked, and until when. */
export interface Mark {
  /** Milliseconds of a worker, GB times milliseconds of a volume. */
  readonly amount: number;
  readonly at: number;
}

/** What an hour adds to an owner's usage. Amounts of money are in billionths. */
export interface UsageShare {
  /** The hour's beginning. */
  readonly at: number;
  readonly amount: number;
  readonly gpuCost: number;
  readonly cpuCost: number;
  readonly diskCost: number;
}

/** Usage that is to be added up, once. */
export interface Deposit {
  readonly kind: MeteredKind;
  /** The number of the worker or volume. */
  readonly no: number;
  readonly ownerNo: number;
  /** The id of the endpoint, pod or volume. */
  readonly resource: string;
  /** The GPU type; empty if there is none. */
  readonly gpuType: string;
  /** The amount up to which it was banked when this was worked out; undefined: never. */
  readonly before: number | undefined;
  readonly mark: Mark;
  readonly shares: readonly UsageShare[];
}

/** A volume that was deleted and is yet to be banked. */
export interface EndedVolume {
  readonly no: number;
  readonly id: string;
  readonly ownerNo: number;
  readonly gbMs: number;
  readonly endedAt: number;
}

/** Selects usage to add up. */
export interface UsageQuery {
  readonly kind: MeteredKind;
  readonly ownerNo: number;
  /** What to add up, for each of some buckets. */
  readonly stretches: readonly (Stretch & { readonly bucket: number })[];
  /** Add up each resource, or all together. */
  readonly byResource: boolean;
  /** Only this resource. */
  readonly resource?: string | undefined;
  /** The most sums; one more is read, so that the caller sees that there are more. */
  readonly limit: number;
}

/** Usage added up. */
export interface UsageSum extends Omit<UsageShare, "at"> {
  readonly bucket: number;
  /** Empty if all resources are added up together. */
  readonly resource: string;
  readonly gpuType: string;
}

export interface UsageStore {
  /** How much of these was banked. */
  marks(kind: "worker" | "volume", nos: readonly number[]): Promise<Map<number, Mark>>;
  /**
   * Adds deposits in one commit. A deposit counts only if what it was worked out from is still the last that was banked:
   * so nothing is counted twice, whoever banks it, and however often.
   */
  bank(deposits: readonly Deposit[]): Promise<void>;
  /** Deleted volumes that are not banked to their end. */
  endedVolumes(limit: number): Promise<EndedVolume[]>;
  forgetEndedVolumes(nos: readonly number[]): Promise<void>;
  /** Forgets marks of workers and volumes that have no row any more, and that were not moved since. */
  forgetMarks(before: number, most: number): Promise<number>;
  /** Usage added up, by bucket, resource and GPU type. */
  sums(query: UsageQuery): Promise<UsageSum[]>;
  prices(): Promise<Prices>;
  savePrices(prices: Prices): Promise<void>;
}
