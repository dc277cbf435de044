/** How a container engine's own volume is named that stands for a network volume. */
export const engineVolume = (id: string): string => `millrace-${id}`;

/** A network volume: a directory that outlives workers. Size in GB. */
export interface Volume {
  readonly no: number;
  readonly id: string;
  readonly ownerNo: number;
  readonly name: string;
  readonly size: number;
  readonly dataCenterId: string;
}

/** What a volume holds, when it was last measured at one host. */
export interface VolumeUse {
  readonly bytes: number;
  readonly at: number;
  /** Whether all of it could be read and counted: else it is this much at least. */
  readonly isWhole: boolean;
}

/** Whether more is in it than its size says; one of size 0 has none. */
export const isPassed = ({ size }: Pick<Volume, "size">, { bytes }: Pick<VolumeUse, "bytes">): boolean =>
  size > 0 && bytes > size * 2 ** 30;
