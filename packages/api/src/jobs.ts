import Type, { type Static } from "typebox";
import { type JobStatus, jobStatuses, waitReasons } from "./states.js";

const Millis = (description: string) => Type.Integer({ minimum: 0, description });
/** In a submission `null` means the same as an absent field. */
const orNull = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

/** Execution policy of one job (contract: Policy object). Times in milliseconds. */
export const Policy = Type.Object({
  executionTimeout: orNull(
    Type.Integer({ minimum: 5_000, maximum: 604_800_000, description: "How long one run may take, in milliseconds." }),
  ),
  lowPriority: orNull(Type.Boolean({ description: "True: the job never causes a worker to start." })),
  ttl: orNull(
    Type.Integer({ minimum: 10_000, maximum: 604_800_000, description: "Lifespan from submission, in milliseconds." }),
  ),
});
export type Policy = Static<typeof Policy>;

/** Storage settings passed to the worker; further string fields are passed too. */
export const S3Config = Type.Object(
  {
    accessId: Type.Optional(Type.String({ description: "The access key's id." })),
    accessSecret: Type.Optional(Type.String({ description: "Its secret, which is masked in logs." })),
    bucketName: Type.Optional(Type.String({ description: "The bucket for the handler's files." })),
    endpointUrl: Type.Optional(Type.String({ description: "The storage's URL, such as https://s3.example.com." })),
  },
  { additionalProperties: Type.String() },
);
export type S3Config = Static<typeof S3Config>;

/** The body of `/run` and `/runsync` (contract: Job submission body). */
export const Submission = Type.Object({
  input: Type.Object(
    {},
    { additionalProperties: true, description: "Passed to the handler unchanged, as the text that was sent." },
  ),
  webhook: Type.Optional(
    Type.Union(
      [
        Type.String({ format: "uri", pattern: "^[Hh][Tt][Tt][Pp][Ss]?:", maxLength: 2_048 }),
        Type.Literal(""),
        Type.Null(),
      ],
      {
        description:
          "An http or https URL that is called when the job becomes final; an empty text and null mean none.",
      },
    ),
  ),
  policy: orNull(Policy),
  s3Config: orNull(S3Config),
});
export type Submission = Static<typeof Submission>;

export const JobStatusSchema = Type.Unsafe<JobStatus>(Type.Union(jobStatuses.map((name) => Type.Literal(name))));

/** The reply of `/run`, `/cancel` and `/retry`. */
export const JobReference = Type.Object({ id: Type.String(), status: JobStatusSchema });

/** The reply of `/status`, `/status-sync` and `/runsync`. Absent fields are left out, never null. */
export const StatusBody = Type.Object({
  id: Type.String(),
  status: JobStatusSchema,
  delayTime: Millis("From submission (or the last retry) to the take, in milliseconds."),
  executionTime: Millis("From the take to the end, in milliseconds; 0 while waiting."),
  output: Type.Optional(Type.Unknown({ description: "The handler's output; progress while IN_PROGRESS." })),
  error: Type.Optional(Type.String({ description: "Why the job is FAILED, TIMED_OUT or cancelled by the system." })),
  workerId: Type.Optional(Type.String({ description: "The last worker that took the job, or an empty string." })),
  retries: Type.Optional(Type.Integer({ description: "How many times the job was given back." })),
  waitReason: Type.Optional(Type.Union(waitReasons.map((name) => Type.Literal(name)))),
  waitDetail: Type.Optional(Type.String()),
  queuePosition: Type.Optional(Type.Integer({ minimum: 0 })),
  expired: Type.Optional(Type.Boolean({ description: "Only for an Idempotency-Key whose job is gone." })),
});
export type StatusBody = Static<typeof StatusBody>;

/** One chunk of a stream (contract: Stream chunk). */
export const StreamChunk = Type.Object({
  output: Type.Unknown(),
  metrics: Type.Object({ stream_index: Type.Integer({ minimum: 0 }) }, { additionalProperties: true }),
});
export const StreamArray = Type.Array(StreamChunk);
export const StreamEnvelope = Type.Object({ status: JobStatusSchema, stream: StreamArray });

/** The reply of `/purge-queue` (contract: Purge result). */
export const PurgeResult = Type.Object({ removed: Type.Integer({ minimum: 0 }), status: Type.String() });

const Count = Type.Integer({ minimum: 0 });
/** The reply of `/health` (contract: Health result, and our additions). */
export const HealthBody = Type.Object({
  jobs: Type.Object({ completed: Count, failed: Count, inProgress: Count, inQueue: Count, retried: Count }),
  workers: Type.Object({
    idle: Count,
    running: Count,
    initializing: Count,
    ready: Count,
    throttled: Count,
    unhealthy: Count,
    paused: Count,
  }),
});
export type HealthBody = Static<typeof HealthBody>;

/** The reply of an endpoint's `/metrics`: its health with the ids of its ready workers. */
export const MetricsBody = Type.Object({
  ...HealthBody.properties,
  readyWorkers: Type.Array(Type.String(), { description: "Idle and running workers, 1,000 at most." }),
});
export type MetricsBody = Static<typeof MetricsBody>;

/** The reply of `/requests`: newest first, with a cursor while there are more. */
export const RequestList = Type.Object({
  requests: Type.Array(StatusBody, { description: "Fewer than `limit` where their outputs are large." }),
  nextCursor: Type.Optional(Type.String({ description: "Cursor of the next page; absent on the last." })),
});
