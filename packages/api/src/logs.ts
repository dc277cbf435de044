import Type, { type Static } from "typebox";

/** A line that a worker printed. */
export const LogLine = Type.Object({
  at: Type.String({ description: "When it was printed, RFC 3339." }),
  workerId: Type.String(),
  stream: Type.Union([Type.Literal("stdout"), Type.Literal("stderr")]),
  text: Type.String({ description: "As the worker printed it, with secrets masked." }),
  jobId: Type.Optional(Type.String({ description: "The job that the line belongs to, if the worker has marked it." })),
  level: Type.Optional(Type.String({ description: "DEBUG, INFO, WARN or ERROR, if the worker has marked the line." })),
  message: Type.Optional(Type.String({ description: "The text without the mark." })),
});
export type LogLine = Static<typeof LogLine>;

/** Reply of `GET /v1/pod/{id}/logs`: each line begins with its time. */
export const ContainerLogs = Type.Object({
  container: Type.Array(Type.String(), { description: "What the container printed, oldest first." }),
  system: Type.Array(Type.String(), { description: "What this server has to say about it." }),
});
export type ContainerLogs = Static<typeof ContainerLogs>;
