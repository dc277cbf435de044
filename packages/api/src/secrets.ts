import Type, { type Static } from "typebox";
import { orNull, time, visibleLines } from "./fields.js";

/** Body of `POST /secrets`. */
export const SecretCreate = Type.Object({
  name: Type.String({
    minLength: 1,
    maxLength: 100,
    pattern: "^[A-Za-z0-9_-]+$",
    description: "Environments refer to it as {{ RUNPOD_SECRET_name }}.",
  }),
  value: Type.String({ minLength: 4, maxLength: 32_768, description: "Never returned, and masked in logs." }),
  description: Type.Optional(Type.String({ maxLength: 1_000, pattern: visibleLines })),
});
export type SecretCreate = Static<typeof SecretCreate>;

/** Body of `PATCH /secrets/{secretId}`: null takes the description away. */
export const SecretUpdate = Type.Object({
  value: Type.Optional(SecretCreate.properties.value),
  description: orNull(Type.String({ maxLength: 1_000, pattern: visibleLines })),
});
export type SecretUpdate = Static<typeof SecretUpdate>;

/** A secret as replies show it: never its value. */
export const Secret = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: Type.String(),
  createdAt: time(),
});
export type Secret = Static<typeof Secret>;
