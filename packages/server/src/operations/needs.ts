import type { Bell } from "../bell.js";
import type { Clock, Signal } from "../clock.js";
import type { Emit } from "../events.js";
import type { Ids } from "../ids.js";
import type { TakeLine } from "../lines/take-line.js";
import type { Registry } from "../registry.js";
import type { Stores } from "../store.js";
import type { Vault } from "../vault.js";

/** What operations and loops may ask for; each names what it needs. */
export interface Parts
  extends Omit<Stores, "close" | "ping" | "endpoints" | "templates" | "volumes" | "workers" | "keys" | "hosts"> {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly bell: Bell;
  readonly registry: Registry;
  readonly vault: Vault;
  readonly emit: Emit;
  /** The line of an endpoint's takers. */
  readonly line: (endpointNo: number) => TakeLine;
  /** Aborted when the server stops: held requests answer their present state. */
  readonly draining: Signal;
  readonly place: PlaceFacts;
}

/** What this host is, and what it lets users do. */
export interface PlaceFacts {
  readonly hostNo: number;
  readonly location: string | undefined;
  /** GPU type names that are here. */
  readonly gpuTypes: readonly string[];
  readonly localProcesses: boolean;
  /** Where volumes are kept. */
  readonly volumesDir: string;
  /** The directory that relative image paths start from. */
  readonly workingDir: string;
  readonly stopGraceMs: number;
}

export type Needs<K extends keyof Parts> = Pick<Parts, K>;

/** What operations speak of, for those who only translate. */
export type { LiveWorker } from "../registry.js";
export type { Chunk, IdempotencyRecord } from "../store.js";
