import type { Bell } from "../bell.js";
import type { Clock, Signal } from "../clock.js";
import type { HostFacts } from "../domain/host.js";
import type { VolumeUse } from "../domain/volume.js";
import type { Emit } from "../events.js";
import type { Ids } from "../ids.js";
import type { Gate } from "../lines/gate.js";
import type { TakeLine } from "../lines/take-line.js";
import type { Registry } from "../registry.js";
import type { Stores } from "../store.js";
import type { Vault } from "../vault.js";

/** What operations and loops may ask for; each names what it needs. */
export interface Parts
  extends Omit<
    Stores,
    "close" | "ping" | "endpoints" | "templates" | "volumes" | "registryAuths" | "workers" | "keys" | "hosts"
  > {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly bell: Bell;
  readonly registry: Registry;
  readonly vault: Vault;
  readonly emit: Emit;
  /** The line of an endpoint's takers. */
  readonly line: (endpointNo: number) => TakeLine;
  /** Where load-balanced requests find their workers. */
  readonly gate: Gate;
  /** Aborted when the server stops: held requests answer their present state. */
  readonly draining: Signal;
  readonly place: PlaceFacts;
}

/** What this host is, and what it lets users do. */
export interface PlaceFacts {
  readonly hostNo: number;
  /** What it has for workers now. */
  readonly facts: () => HostFacts;
  readonly localProcesses: boolean;
  /** Where volumes are kept. */
  readonly volumesDir: string;
  /** What volumes hold here, by their ids, as of the last measurement. */
  readonly volumeUse: Map<string, VolumeUse>;
  /** The directory that relative image paths start from. */
  readonly workingDir: string;
  readonly stopGraceMs: number;
  /** The share of this host's memory that is free. */
  readonly freeMemoryShare: () => number;
  /** How long a paused worker is kept. */
  readonly flashBootMs: number;
  /** What keeps a container image from running here, as far as the engine knows it now; undefined where nothing does. */
  readonly imageComplaint?: (image: string, hasCommand: boolean) => Promise<string | undefined>;
  /** Removes the engine's volume that stands for a network volume, where containers find theirs in such. */
  readonly removeEngineVolume?: (volumeId: string) => Promise<void>;
}

export type Needs<K extends keyof Parts> = Pick<Parts, K>;

/** What operations speak of, for those who only translate. */
export type { Seat } from "../lines/gate.js";
export type { LiveWorker } from "../registry.js";
export type { Chunk, IdempotencyRecord } from "../store.js";
