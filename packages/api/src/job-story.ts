import Type, { type Static } from "typebox";
import { time } from "./fields.js";
import { JobStatusSchema } from "./jobs.js";

/** What happened to a job besides takes and its end. */
export const JobHappening = Type.Object({
  at: time(),
  event: Type.String({ description: "giveBack, fail, timeOut, cancel or retry." }),
  workerId: Type.Optional(Type.String({ description: "The worker that held the job." })),
  note: Type.Optional(Type.String({ description: "Why." })),
});
export type JobHappening = Static<typeof JobHappening>;

/** When and why everything happened to a job. */
export const JobStory = Type.Object({
  id: Type.String(),
  status: JobStatusSchema,
  createdAt: time("When it was submitted."),
  queuedAt: time("Submission, or the last retry."),
  takenAt: Type.Optional(time("When a worker took it last.")),
  finishedAt: Type.Optional(time("When it ended.")),
  expiresAt: time("When it is deleted, if nothing happens to it before."),
  starts: Type.Integer({ minimum: 0, description: "How many times a worker took it, since the last retry." }),
  workerId: Type.Optional(Type.String({ description: "The last worker that took it." })),
  lowPriority: Type.Boolean(),
  executionTimeoutMs: Type.Integer({ description: "How long one run may take, in milliseconds." }),
  inputBytes: Type.Integer({ minimum: 0, description: "Size of its input as JSON." }),
  webhook: Type.Optional(Type.String()),
  happened: Type.Array(JobHappening, { description: "The last 100, oldest first." }),
});
export type JobStory = Static<typeof JobStory>;
