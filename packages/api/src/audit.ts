import Type, { type Static } from "typebox";
import { time } from "./fields.js";

const fields = (description: string) => Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description }));

/** Everything that the audit log records: the kind of resource, and what was done to it. */
export const auditActions = [
  "delivery.redeliver",
  "endpoint.create",
  "endpoint.update",
  "endpoint.delete",
  "endpoint.purgeQueue",
  "endpoint.restart",
  "endpoint.rollback",
  "key.create",
  "key.update",
  "key.delete",
  "key.rotate",
  "pod.create",
  "pod.update",
  "pod.delete",
  "pod.start",
  "pod.stop",
  "pod.restart",
  "pod.reset",
  "prices.update",
  "receiver.pause",
  "receiver.resume",
  "registryAuth.create",
  "registryAuth.update",
  "registryAuth.delete",
  "secret.create",
  "secret.update",
  "secret.delete",
  "template.create",
  "template.update",
  "template.delete",
  "user.create",
  "user.update",
  "user.delete",
  "user.rotateWebhookSecret",
  "user.transfer",
  "volume.create",
  "volume.update",
  "volume.delete",
  "worker.pause",
  "worker.stop",
] as const;

/** A change that was made with a key. */
export const AuditEntry = Type.Object({
  at: time(),
  userId: Type.String({ description: "The user whose key made the change." }),
  keyId: Type.String(),
  keyPrefix: Type.String({ description: "The first characters of the key, as it was then." }),
  address: Type.Optional(Type.String({ description: "Where the request came from." })),
  requestId: Type.Optional(Type.String({ description: "The request's X-Request-ID." })),
  action: Type.String({ description: "The kind of resource and what was done to it, such as endpoint.update." }),
  resource: Type.String({ description: "The resource's id." }),
  before: fields(
    "The fields that were changed, as they were; absent for a new resource. Values of environments are hidden.",
  ),
  after: fields("The same fields afterwards; absent for a deleted resource."),
});
export type AuditEntry = Static<typeof AuditEntry>;

/** A page of the audit log, newest first. */
export const AuditPage = Type.Object({
  entries: Type.Array(AuditEntry),
  nextCursor: Type.Optional(
    Type.String({
      description:
        "Fetches the next page; absent on the last one. A page may be short, or empty, and others follow it.",
    }),
  ),
});
export type AuditPage = Static<typeof AuditPage>;
