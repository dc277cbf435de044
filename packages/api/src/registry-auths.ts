import Type, { type Static } from "typebox";
import { visible, visibleLines } from "./fields.js";

/** Body of `POST /containerregistryauth`. */
export const RegistryAuthCreate = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 191, pattern: visible, description: "A name; unique among yours." }),
  username: Type.String({ minLength: 1, maxLength: 1_000, pattern: visible, description: "The registry's user." }),
  password: Type.String({
    minLength: 1,
    maxLength: 20_000,
    pattern: visibleLines,
    description: "The registry's password or token; it is never shown.",
  }),
});
export type RegistryAuthCreate = Static<typeof RegistryAuthCreate>;
/** Credentials of a container registry as replies show them. */
export const RegistryAuth = Type.Object({ id: Type.String(), name: Type.String() });
export type RegistryAuth = Static<typeof RegistryAuth>;
