import Type, { type Static } from "typebox";
import { choice, visible } from "../fields.js";

const name = Type.String({ minLength: 1, maxLength: 191, pattern: visible });
const size = Type.Integer({ minimum: 10, maximum: 4_000, description: "Size in GB." });
export const volumeTypes = ["STANDARD", "HIGH_PERFORMANCE"] as const;

/** Body of `POST /v2/network-volumes`. */
export const VolumeCreate = Type.Object({
  name,
  size,
  dataCenter: Type.String({ minLength: 1, maxLength: 100, pattern: visible }),
  type: Type.Optional(choice(volumeTypes, "Every volume here is STANDARD.")),
});
export type VolumeCreate = Static<typeof VolumeCreate>;

/** Body of `PATCH /v2/network-volumes/{id}`. */
export const VolumeUpdate = Type.Object({ name: Type.Optional(name), size: Type.Optional(size) });
export type VolumeUpdate = Static<typeof VolumeUpdate>;

/** A network volume as REST v2 shows it. */
export const Volume = Type.Object({
  id: Type.String(),
  name: Type.String(),
  size: Type.Integer(),
  dataCenter: Type.String(),
  type: choice(volumeTypes, "Every volume here is STANDARD."),
});

/** Reply of `GET /v2/network-volumes`. */
export const Volumes = Type.Object({ networkVolumes: Type.Array(Volume) });
