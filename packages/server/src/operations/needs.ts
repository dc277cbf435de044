import type { Bell } from "../bell.js";
import type { Clock, Signal } from "../clock.js";
import type { VolumeBound, VolumeUse } from "../domain/endpoints/volume.js";
import type { FairLine } from "../domain/fair-line.js";
import type { HostFacts } from "../domain/hosts/host.js";
import type { Place } from "../domain/hosts/place.js";
import type { ServerAddress } from "../domain/hosts/server.js";
import type { Emit } from "../events.js";
import type { Quota } from "../host/quota.js";
import type { Ids } from "../ids.js";
import type { Gate } from "../lines/gate.js";
import type { HeldCalls } from "../lines/held-calls.js";
import type { Lending } from "../lines/lent-texts.js";
import type { News } from "../lines/news.js";
import type { QueueRoom } from "../lines/queue-room.js";
import type { TakeLine } from "../lines/take-line.js";
import type { Registry } from "../memory/registry.js";
import type { Connect } from "../provider.js";
import type { HostReport, Stores } from "../store/index.js";
import type { Vault } from "../vault.js";

/** Everything operations and loops can depend on; each names the parts it needs. */
export interface Parts
  extends Lending,
    Omit<
      Stores,
      "close" | "ping" | "endpoints" | "templates" | "volumes" | "registryAuths" | "workers" | "access" | "hosts"
    > {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly bell: Bell;
  readonly registry: Registry;
  readonly vault: Vault;
  readonly emit: Emit;
  /** The line of workers that wait for an endpoint's jobs. */
  readonly line: (endpointNo: number) => TakeLine;
  /** Held requests and streams by key. */
  readonly heldCalls: HeldCalls;
  /** What-ifs of scalers, one at a time: each may take a second of processor time, in short turns. */
  readonly replays: FairLine;
  /** The batches of all purges, one at a time: many at once would be one long commit. */
  readonly purges: FairLine;
  /** Jobs that clients cancel or give a ttl: each is a write of its own, and one client may have thousands. */
  readonly changes: FairLine;
  readonly queueRoom: QueueRoom;
  /** What changes, for whoever looks at it. */
  readonly news: News;
  /** Matches load-balanced requests with workers. */
  readonly gate: Gate;
  /** Whether jobs are traced: their clients' `traceparent` is kept, and workers and webhooks get one. */
  readonly isTraced: boolean;
  /** Aborted when the server stops: held requests then reply with the current state. */
  readonly draining: Signal;
  readonly here: Here;
  /** Where the bootstrap key is kept, for its rotation. */
  readonly bootstrapKey: BootstrapKey;
  /** Masks a secret in a worker's log, as kept and as shown. */
  readonly hideInLog: (workerId: string, secret: string) => Promise<void>;
}

/** The place where the bootstrap key's text is kept. */
export interface BootstrapKey {
  /** Keeps a new text, stores its hash by `store`, then replaces the old text. After a crash one of the two works. */
  replace(key: string, store: () => Promise<void>): Promise<void>;
}

/** Facts about this server and its machine, and what users may do here. */
export interface Here {
  /** The number of this machine's host. */
  readonly hostNo: number;
  /** What this machine has for workers right now. */
  readonly facts: () => HostFacts;
  /** The hosts that this server tends, with what each has for workers right now. */
  readonly hosts: () => readonly HostReport[];
  /** Whether this server tends a host. */
  readonly tends: (hostNo: number) => boolean;
  /** Whether this server can read the logs of a host's workers: of those that it tends, and of any in a cluster. */
  readonly readsLogs: (hostNo: number) => boolean;
  /** This server's number, and the address where other servers reach it; absent if there can be no other servers. */
  readonly server?: { readonly no: number; readonly address: ServerAddress };
  readonly localProcesses: boolean;
  /** Where workers run whose endpoint does not say, in order of preference. */
  readonly places: readonly Place[];
  /** The clusters that this server reaches, in order of preference. */
  readonly clusters: readonly ReachedCluster[];
  readonly volumes: VolumesHere;
  /** The directory that relative image paths start from. */
  readonly workingDir: string;
  readonly stopGraceMs: number;
  /** The share of this host's memory that is free, 0 to 1. */
  readonly freeMemoryShare: () => number;
  /** How long workers stay alive without their server. */
  readonly awayMs: number;
  /** How long entries of the audit log are kept; absent: for the default time. */
  readonly auditKeptMs?: number;
  /** How long a paused worker is kept. */
  readonly flashBootMs: number;
  /** Whether a directory holds a handler that starts without a command. If absent, every directory does. */
  readonly hasHandler?: (directory: string) => boolean;
  /**
   * Why a container image cannot run here, as far as the engine knows now; undefined if it knows no reason.
   */
  readonly imageComplaint?: (image: string, hasCommand: boolean) => Promise<string | undefined>;
}

/** A cluster that runs workers. */
export interface ReachedCluster {
  /** Its host's number. */
  readonly no: number;
  readonly name: string;
  readonly podClasses: readonly string[];
  /** Connects to its workers, where their addresses are not reached from here. */
  readonly connect?: Connect | undefined;
}

/** Where this host keeps network volumes, each in a directory named after its id. */
export interface VolumesHere {
  readonly dir: string;
  readonly quota: Quota;
  /** Disk use by volume id, as of the last measurement. */
  readonly use: Map<string, VolumeUse>;
  /** Size limits in force here, by volume id. */
  readonly bounds: Map<string, VolumeBound>;
  /** The volumes that a provider keeps in their place, if its workers mount those instead. */
  readonly held?: HeldVolumes;
  /** The volumes that clusters keep for their workers. */
  readonly inClusters: readonly ClusterVolumes[];
}

/** The volumes that a cluster keeps, for the workers that it runs. */
export interface ClusterVolumes extends Pick<HeldVolumes, "nameOf" | "remove"> {
  /** The ids of volumes that it has, of network volumes and of pods. */
  list(): Promise<readonly string[]>;
}

export interface HeldVolumes {
  /** The name by which people find it at its provider. */
  nameOf(volumeId: string): string;
  /** Why their size cannot be limited. */
  readonly unbounded: string;
  remove(volumeId: string): Promise<void>;
  /** Bytes used, by network volume id. Volumes that no worker has used are left out. */
  measure(): Promise<ReadonlyMap<string, number>>;
}

export type Needs<K extends keyof Parts> = Pick<Parts, K>;

/** Types in the results of operations, for the edges, which only translate them. */
export type { Found, Seat } from "../lines/gate-line.js";
export type { OtherServer } from "../lines/other-servers.js";
export type { LiveWorker } from "../memory/registry.js";
export type { Chunk, IdempotencyRecord } from "../store/index.js";
