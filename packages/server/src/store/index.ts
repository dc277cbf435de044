import type { AccessStore } from "./access.js";
import type { AuditStore } from "./audit.js";
import type { ChunkStore } from "./chunks.js";
import type { DecisionStore } from "./decisions.js";
import type { DeliveryStore } from "./deliveries.js";
import type { EndpointStore } from "./endpoints.js";
import type { HostStore } from "./hosts.js";
import type { JobReader, JobStore } from "./jobs.js";
import type { ReceiverStore } from "./receivers.js";
import type { RegistryAuthStore, TemplateStore, VolumeStore } from "./resources.js";
import type { SecretStore } from "./secrets.js";
import type { SharedStore } from "./servers.js";
import type { TallyReader } from "./tallies.js";
import type { UsageStore } from "./usage.js";
import type { WorkerStore } from "./workers.js";

export type * from "./access.js";
export type * from "./audit.js";
export type * from "./chunks.js";
export type * from "./decisions.js";
export type * from "./deliveries.js";
export type * from "./endpoints.js";
export type * from "./hosts.js";
export type * from "./jobs.js";
export type * from "./receivers.js";
export type * from "./resources.js";
export type * from "./secrets.js";
export type * from "./servers.js";
export type * from "./tallies.js";
export type * from "./usage.js";
export type * from "./workers.js";

/** All stores of one database. */
export interface Stores {
  /** Undefined if a single server uses the database. */
  readonly shared?: SharedStore;
  readonly jobs: JobStore;
  readonly reader: JobReader;
  readonly tallies: TallyReader;
  readonly chunks: ChunkStore;
  readonly deliveries: DeliveryStore;
  readonly audit: AuditStore;
  readonly endpoints: EndpointStore;
  readonly templates: TemplateStore;
  readonly volumes: VolumeStore;
  readonly registryAuths: RegistryAuthStore;
  readonly workers: WorkerStore;
  readonly access: AccessStore;
  readonly secrets: SecretStore;
  readonly decisions: DecisionStore;
  readonly hosts: HostStore;
  readonly usage: UsageStore;
  readonly receivers: ReceiverStore;
  /** Resolves when the database has answered a read. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
