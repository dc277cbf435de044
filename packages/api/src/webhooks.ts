import Type from "typebox";

/** One webhook delivery with its attempts. */
export const WebhookDelivery = Type.Object({
  id: Type.String(),
  jobId: Type.String(),
  url: Type.String(),
  state: Type.String({ description: "pending, delivered or failed." }),
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
