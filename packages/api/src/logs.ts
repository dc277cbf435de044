import Type, { type Static } from "typebox";

/** A line that a worker printed. */
export const LogLine = Type.Object({
  at: Type.String({ description: "When it was printed, RFC 3339." }),
  workerId: Type.String(),
  stream: Type.Union([Type.Literal("stdout"), Type.Literal("stderr")]),
  text: Type.String({ description: "As the worker printed it, but for secrets." }),
  jobId: Type.Optional(Type.String({ description: "Whose line it is, where the worker has marked it." })),
  level: Type.Optional(Type.String({ description: "DEBUG, INFO, WARN, ERROR, where the worker has marked it." })),
  message: Type.Optional(Type.String({ description: "The text without its mark." })),
});
export type LogLine = Static<typeof LogLine>;
