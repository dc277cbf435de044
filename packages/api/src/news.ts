import Type, { type Static } from "typebox";

/** Data of the event `changed` of `GET /v1/events`. */
export const NewsItems = Type.Array(
  Type.Object({
    endpointId: Type.String({ description: "The endpoint or pod." }),
    what: Type.Array(Type.String({ description: "jobs, workers or endpoint (its settings)." })),
  }),
);
export type NewsItems = Static<typeof NewsItems>;
