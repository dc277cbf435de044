import Type from "typebox";

export const deliveryStates = ["pending", "held", "delivered", "failed"] as const;

/** One webhook delivery with its attempts. */
export const WebhookDelivery = Type.Object({
  id: Type.String(),
  jobId: Type.String(),
  url: Type.String(),
  state: Type.String({ description: "pending, held (its receiver is paused), delivered or failed." }),
  nextAttemptAt: Type.Optional(Type.String({ format: "date-time" })),
  attempts: Type.Array(
    Type.Object({
      at: Type.String({ format: "date-time" }),
      status: Type.Optional(Type.Integer()),
      error: Type.Optional(Type.String()),
      durationMs: Type.Integer(),
      reply: Type.Optional(Type.String({ description: "The first KB of what the receiver answered; not in lists." })),
    }),
  ),
});

/** Where webhooks go: all URLs with one scheme, host and port. */
export const WebhookReceiver = Type.Object({
  id: Type.String(),
  origin: Type.String(),
  state: Type.String({
    description: "failing (the last five attempts or more have failed), healthy (fewer have) or paused.",
  }),
  lastAttemptAt: Type.String({ format: "date-time" }),
  failures: Type.Integer({ minimum: 0, description: "Attempts in a row that have failed." }),
  failingSince: Type.Optional(Type.String({ format: "date-time" })),
  lastError: Type.Optional(Type.String()),
  pausedAt: Type.Optional(Type.String({ format: "date-time" })),
  held: Type.Integer({ minimum: 0, description: "Deliveries that wait until it is resumed." }),
});
