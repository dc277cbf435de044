/** How a container engine's own volume is named that stands for a network volume. */
export const engineVolume = (id: string): string => `millrace-${id}`;

/** The id of the network volume that an engine's volume stands for; undefined for all others. */
export const networkVolume = (name: string): string | undefined => /^millrace-([a-z0-9]{14})$/.exec(name)?.[1];

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

/** What a volume is bounded to at one host. */
export interface VolumeBound {
  readonly bytes: number;
  /** Why its file system does not hold it to that; undefined where it does. */
  readonly why: string | undefined;
}

/** Its size in bytes; 0 is none. */
export const sizeBytes = ({ size }: Pick<Volume, "size">): number => size * 2 ** 30;

/** Whether more is in it than its size says; one of size 0 has none. */
export const isPassed = (volume: Pick<Volume, "size">, { bytes }: Pick<VolumeUse, "bytes">): boolean =>
  volume.size > 0 && bytes > sizeBytes(volume);
