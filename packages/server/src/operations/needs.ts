import type { Bell } from "../bell.js";
import type { Clock, Signal } from "../clock.js";
import type { VolumeBound, VolumeUse } from "../domain/endpoints/volume.js";
import type { HostFacts, ServerAddress } from "../domain/hosts/host.js";
import type { Emit } from "../events.js";
import type { Quota } from "../host/quota.js";
import type { Ids } from "../ids.js";
import type { Gate } from "../lines/gate.js";
import type { Lending } from "../lines/lent-texts.js";
import type { TakeLine } from "../lines/take-line.js";
import type { Registry } from "../memory/registry.js";
import type { Stores } from "../store/index.js";
import type { Vault } from "../vault.js";

/** What operations and loops may ask for; each names what it needs. */
export interface Parts
  extends Lending,
    Omit<
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
  /** Masks a text in what is kept and shown of a worker's log. */
  readonly hideInLog: (workerId: string, secret: string) => Promise<void>;
}

/** What this host is, and what it lets users do. */
export interface PlaceFacts {
  readonly hostNo: number;
  /** Where the other servers reach this one, where there may be others. */
  readonly server?: ServerAddress;
  /** What it has for workers now. */
  readonly facts: () => HostFacts;
  readonly localProcesses: boolean;
  readonly volumes: VolumePlace;
  /** The directory that relative image paths start from. */
  readonly workingDir: string;
  readonly stopGraceMs: number;
  /** The share of this host's memory that is free. */
  readonly freeMemoryShare: () => number;
  /** How long workers live on without their server. */
  readonly awayMs: number;
  /** How long a paused worker is kept. */
  readonly flashBootMs: number;
  /** Whether a directory holds a handler that is started without being told how; without it every one does. */
  readonly hasHandler?: (directory: string) => boolean;
  /** What keeps a container image from running here, as far as the engine knows it now; undefined where nothing does. */
  readonly imageComplaint?: (image: string, hasCommand: boolean) => Promise<string | undefined>;
}

/** Where this host keeps network volumes, each in a directory of its id. */
export interface VolumePlace {
  readonly dir: string;
  readonly quota: Quota;
  /** What they hold here, by their ids, as of the last measurement. */
  readonly use: Map<string, VolumeUse>;
  /** What they are bounded to here. */
  readonly bounds: Map<string, VolumeBound>;
  /** The engine's own volumes that stand for them, where containers find theirs in such. */
  readonly engine?: EngineVolumes;
}

export interface EngineVolumes {
  remove(volumeId: string): Promise<void>;
  /** How many bytes each holds, by the ids of network volumes; none that no container has used. */
  measure(): Promise<ReadonlyMap<string, number>>;
}

export type Needs<K extends keyof Parts> = Pick<Parts, K>;

/** What operations speak of, for those who only translate. */
export type { Found, Seat } from "../lines/gate.js";
export type { OtherServer } from "../lines/other-servers.js";
export type { LiveWorker } from "../memory/registry.js";
export type { Chunk, IdempotencyRecord } from "../store/index.js";
