/** A network volume: a directory that outlives workers. Size in GB. */
export interface Volume {
  readonly no: number;
  readonly id: string;
  readonly ownerNo: number;
  readonly name: string;
  readonly size: number;
  readonly dataCenterId: string;
  /** Since when it has this size; 0 for one that is older than the counting of sizes. */
  readonly sizedAt: number;
  /** What its earlier sizes add up to, in GB times milliseconds. */
  readonly gbMs: number;
}

/** What a volume holds, as last measured on one host. */
export interface VolumeUse {
  readonly bytes: number;
  readonly at: number;
  /** Whether everything could be read and counted; otherwise `bytes` is a lower bound. */
  readonly isWhole: boolean;
}

/** A volume's size limit on one host. */
export interface VolumeBound {
  readonly bytes: number;
  /** Why the file system does not enforce it; undefined if it does. */
  readonly why: string | undefined;
}

/** A volume's size in bytes; 0 means unlimited. */
export const sizeBytes = ({ size }: Pick<Volume, "size">): number => size * 2 ** 30;

/** Whether a volume holds more than its size. A volume of size 0 has no limit. */
export const isPassed = (volume: Pick<Volume, "size">, { bytes }: Pick<VolumeUse, "bytes">): boolean =>
  volume.size > 0 && bytes > sizeBytes(volume);
