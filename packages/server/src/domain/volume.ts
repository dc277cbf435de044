/** A network volume: a directory that outlives workers. Size in GB. */
export interface Volume {
  readonly no: number;
  readonly id: string;
  readonly ownerNo: number;
  readonly name: string;
  readonly size: number;
  readonly dataCenterId: string;
}
