import Type, { type Static } from "typebox";
import { choice, orNull, time, visible } from "./fields.js";

const name = (of: string) =>
  Type.String({ minLength: 1, maxLength: 191, pattern: visible, description: `${of}: 1 to 191 visible characters.` });
const role = choice(["admin", "member"] as const, "An admin manages users, and the keys of all users.");

const quota = (of: string) =>
  orNull(Type.Integer({ minimum: 0, maximum: 1_000_000_000, description: `The most ${of}; null: no quota.` }));
const quotas = {
  workers: quota("workers of endpoints at a time"),
  gpus: quota("GPUs that its workers and pods hold at a time"),
  queuedJobs: quota("jobs waiting in all of its queues"),
  volumesGb: quota("GB of network volumes and of pods' own volumes"),
  endpoints: quota("endpoints"),
  pods: quota("pods"),
  templates: quota("templates"),
  keys: quota("API keys"),
};
const terms = {
  serverlessDiscount: orNull(
    Type.Number({
      minimum: 0,
      maximum: 1,
      description: "The share of the price of endpoints' workers that is taken off.",
    }),
  ),
  spendLimit: orNull(
    Type.Number({
      minimum: 0,
      maximum: 1_000_000,
      description: "What everything may cost an hour; beyond it nothing starts.",
    }),
  ),
  weight: orNull(
    Type.Number({
      minimum: 0.01,
      maximum: 100,
      description: "Its share of places that several users wait for; 1 by default.",
    }),
  ),
  quotas: orNull(Type.Object(quotas, { additionalProperties: false })),
};

/** Body of `POST /users`. */
export const UserCreate = Type.Object({
  ...terms,
  name: name("A name that no other user has"),
  role: Type.Optional(role),
});
export type UserCreate = Static<typeof UserCreate>;
/** Body of `PATCH /users/{userId}`: only the fields sent change. */
export const UserUpdate = Type.Partial(UserCreate);
export type UserUpdate = Static<typeof UserUpdate>;
/** A user as replies show it. */
export const User = Type.Object({
  id: Type.String(),
  name: Type.String(),
  role,
  serverlessDiscount: Type.Optional(Type.Number()),
  spendLimit: Type.Optional(Type.Number()),
  weight: Type.Optional(Type.Number()),
  quotas: Type.Optional(Type.Record(Type.String(), Type.Integer())),
  createdAt: Type.Optional(time()),
  oldWebhookSecretUntil: Type.Optional(
    Type.String({
      format: "date-time",
      description: "Until then the previous webhook secret also signs.",
    }),
  ),
});
export type User = Static<typeof User>;
/** The reply to `POST /users`, the only reply that shows another user's secret. */
export const NewUser = Type.Object({
  ...User.properties,
  webhookSecret: Type.String({
    description: "Signs the user's webhooks; later only the user's own keys can read it, at GET /v1/webhooks/secret.",
  }),
});
export type NewUser = Static<typeof NewUser>;
/** The reply to a rotation of a user's webhook secret. */
export const NewWebhookSecret = Type.Object({ webhookSecret: NewUser.properties.webhookSecret });

const access = choice(
  ["read", "run"] as const,
  "read: status, stream, health and logs. run: also submit, cancel, retry and purge.",
);
/** What a key may do. */
export const KeyScope = Type.Union(
  [
    Type.Literal("all", { description: "Everything that its user may do." }),
    Type.Literal("read", { description: "Read everything that its user may read, except the webhook secret." }),
    Type.Object(
      {
        endpoints: Type.Array(Type.Object({ id: Type.String({ maxLength: 80 }), access }), {
          minItems: 1,
          maxItems: 100,
        }),
      },
      { description: "Jobs of chosen endpoints, and nothing else except reading about these endpoints." },
    ),
  ],
  {
    description: "What the key may do.",
    title: '"all", "read" or {"endpoints": [{"id", "access": "read" or "run"}]}',
  },
);
export type KeyScope = Static<typeof KeyScope>;

const expiresAt = (description: string) =>
  Type.Optional(
    Type.Union([Type.String({ maxLength: 40, format: "date-time" }), Type.Null()], {
      title: "a time in RFC 3339 format, as in 2030-01-31T12:00:00Z, or null",
      description,
    }),
  );
/** Body of `POST /apikeys`. */
export const ApiKeyCreate = Type.Object({
  name: name("A name for people"),
  scope: Type.Optional(KeyScope),
  expiresAt: expiresAt("When it stops working, a time to come; null or absent means never."),
  userId: Type.Optional(Type.String({ maxLength: 80, description: "The key's user; an admin may name any user." })),
});
export type ApiKeyCreate = Static<typeof ApiKeyCreate>;
/** Body of `PATCH /apikeys/{keyId}`: only the fields sent change. */
export const ApiKeyUpdate = Type.Object({
  name: Type.Optional(name("A name for people")),
  scope: Type.Optional(KeyScope),
  expiresAt: expiresAt("When it stops working; a past time ends it at once; null means never."),
});
export type ApiKeyUpdate = Static<typeof ApiKeyUpdate>;
/** Body of `POST /apikeys/{keyId}/rotate`. */
export const ApiKeyRotate = Type.Object({
  overlapSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 2_592_000,
      default: 86_400,
      description: "How long the old key still works; 0 ends it at once.",
    }),
  ),
});
export type ApiKeyRotate = Static<typeof ApiKeyRotate>;
/** An API key as replies show it. */
export const ApiKey = Type.Object({
  id: Type.String(),
  name: Type.String(),
  prefix: Type.String({ description: "The key's first characters." }),
  userId: Type.String(),
  scope: KeyScope,
  isBootstrap: Type.Optional(Type.Boolean({ description: "The key of the first start." })),
  createdAt: Type.Optional(time()),
  expiresAt: Type.Optional(time()),
  lastUsedAt: Type.Optional(time()),
  oldPrefix: Type.Optional(Type.String({ description: "The first characters of the previous key." })),
  oldUntil: Type.Optional(Type.String({ format: "date-time", description: "Until then the previous key also works." })),
});
export type ApiKey = Static<typeof ApiKey>;
/** The reply to a key's creation or rotation, the only reply that shows the key. */
export const NewApiKey = Type.Object({ ...ApiKey.properties, key: Type.String({ description: "It is shown once." }) });
export type NewApiKey = Static<typeof NewApiKey>;
