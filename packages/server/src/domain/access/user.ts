/** The webhook secret that a user had before it was rotated, sealed, while it still signs. */
export interface OldWebhookSecret {
  readonly sealed: string;
  /** When it stops signing, in ms since 1970. */
  readonly until: number;
}

/** What an admin allows a user, and what it costs. An absent quota is none. */
export interface Terms {
  /** The share of the price of serverless workers that is taken off, 0 to 1. */
  readonly serverlessDiscount?: number;
  /** What workers, pods and volumes may cost an hour, in billionths: beyond it none is started. */
  readonly spendLimit?: number;
  readonly quotas?: Quotas;
  /** Its share of places that several users wait for; 1 unless given. */
  readonly weight?: number;
}

/** The most that a user may have at a time. */
export interface Quotas {
  /** Workers of endpoints that run, or are being started. */
  readonly workers?: number;
  readonly pods?: number;
  readonly gpus?: number;
  readonly endpoints?: number;
  readonly templates?: number;
  readonly keys?: number;
  readonly queuedJobs?: number;
  /** Of all network volumes together, in GB. */
  readonly volumesGb?: number;
}
export const quotaNames = [
  "workers",
  "pods",
  "gpus",
  "endpoints",
  "templates",
  "keys",
  "queuedJobs",
  "volumesGb",
] as const satisfies readonly (keyof Quotas)[];

/** Someone who owns resources: a person, a team, a program. */
export interface User {
  readonly no: number;
  readonly id: string;
  readonly name: string;
  readonly isAdmin: boolean;
  /** The secret that signs the user's webhooks, sealed. */
  readonly webhookSecret: string;
  readonly oldWebhookSecret: OldWebhookSecret | undefined;
  /** SSH keys, one a line, which pods accept. */
  readonly pubKey: string;
  readonly terms: Terms;
  readonly createdAt: number | undefined;
  /** A deleted user's row stays while jobs of its endpoints may still send webhooks. */
  readonly deletedAt: number | undefined;
}
