import Type from "typebox";
import { RegistryAuth } from "../registry-auths.js";

/** Reply of `GET /v2/registries`. */
export const Registries = Type.Object({ registries: Type.Array(RegistryAuth) });
