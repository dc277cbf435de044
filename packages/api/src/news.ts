import Type, { type Static } from "typebox";

/** Data of the event `changed` of `GET /v1/events`. */
export const NewsItems = Type.Array(
  Type.Object({
    endpointId: Type.Optional(
      Type.String({ description: "The endpoint or pod; absent for what belongs to no single one: webhooks." }),
    ),
    what: Type.Array(
      Type.String({
        description: "jobs, workers or endpoint (its settings); or webhooks: deliveries and their receivers.",
      }),
    ),
  }),
);
export type NewsItems = Static<typeof NewsItems>;
