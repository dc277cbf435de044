import Type, { type Static } from "typebox";

export const bucketSizes = ["hour", "day", "week", "month", "year"] as const;

const asked = (description: string) => Type.Optional(Type.String({ description }));

/** The query parameters that say for which time a bill is. */
export const billPeriod = {
  startTime: asked("RFC 3339; the bucket that it falls into is the first. 30 days before the end by default."),
  endTime: asked("RFC 3339; the bucket that it falls into is the last. Now by default."),
  bucketSize: Type.Optional(Type.Union(bucketSizes.map((size) => Type.Literal(size)))),
  timeZone: asked("The IANA time zone in which buckets begin, such as Europe/Berlin; UTC by default."),
};

const price = (of: string) => Type.Number({ minimum: 0, maximum: 1_000_000, description: `Of ${of}, an hour.` });
const gpus = Type.Record(Type.String({ maxLength: 200 }), price("one GPU"), {
  description: "By GPU type.",
  maxProperties: 500,
});

/** Body of `PUT /prices`: all prices; one that is left out is 0. */
export const PricesUpdate = Type.Object({
  gpus: Type.Optional(gpus),
  vcpu: Type.Optional(price("one virtual processor")),
  memoryGb: Type.Optional(price("one GB of memory")),
  volumeGb: Type.Optional(price("one GB of a network volume")),
});
export type PricesUpdate = Static<typeof PricesUpdate>;

/** Prices as replies show them. */
export const Prices = Type.Object({
  gpus,
  vcpu: price("one virtual processor"),
  memoryGb: price("one GB of memory"),
  volumeGb: price("one GB of a network volume"),
});
export type Prices = Static<typeof Prices>;

const amount = (description: string) => Type.Number({ minimum: 0, description });
const whole = (description: string) => Type.Integer({ minimum: 0, description });

/** A record of a bill for endpoints or pods. */
export const BillingRecord = Type.Object({
  time: Type.String({ format: "date-time", description: "The bucket's beginning." }),
  amount: amount("What it costs."),
  timeBilledMs: whole("How long workers or pods ran, added up, in milliseconds."),
  endpointId: Type.Optional(Type.String()),
  podId: Type.Optional(Type.String()),
  gpuTypeId: Type.Optional(Type.String({ description: "Empty for those without a GPU." })),
});

/** A record of a bill for network volumes. */
export const VolumeBillingRecord = Type.Object({
  time: Type.String({ format: "date-time", description: "The bucket's beginning." }),
  amount: amount("What it costs."),
  diskSpaceBilledGb: whole("The size of all volumes together, on average over the bucket, in GB."),
  highPerformanceStorageAmount: amount("0: every volume here is a standard one."),
  highPerformanceStorageDiskSpaceBilledGb: whole("0: every volume here is a standard one."),
});
