/** The webhook secret that a user had before it was rotated, sealed, while it still signs. */
export interface OldWebhookSecret {
  readonly sealed: string;
  /** When it stops signing, in ms since 1970. */
  readonly until: number;
}

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
  readonly createdAt: number | undefined;
  /** A deleted user's row stays while jobs of its endpoints may still send webhooks. */
  readonly deletedAt: number | undefined;
}
