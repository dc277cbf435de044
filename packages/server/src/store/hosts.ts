import type { HostFacts } from "../domain/hosts/host.js";

export interface HostStore {
  /** The number of the host with this id; a new host is added. */
  ensure(id: string, now: number): Promise<number>;
}

/** Where workers run: a machine, or a cluster. */
export interface Host extends HostFacts {
  readonly no: number;
  /** When the server that tends it last reported its resources. */
  readonly seenAt: number;
}

/** A host as the server that tends it reports it. */
export interface HostReport {
  readonly no: number;
  readonly id: string;
  readonly facts: HostFacts;
}
