import Type, { type Static } from "typebox";
import { visible } from "./fields.js";

const Size = Type.Integer({ minimum: 0, maximum: 4_000, description: "Size in GB." });
/** Body of `POST /networkvolumes`. */
export const VolumeCreate = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 191, pattern: visible }),
  size: Size,
  dataCenterId: Type.String({ minLength: 1, maxLength: 100, pattern: visible }),
});
export type VolumeCreate = Static<typeof VolumeCreate>;
/** Body of `PATCH /networkvolumes/{id}`. */
export const VolumeUpdate = Type.Object({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 191, pattern: visible })),
  size: Type.Optional(Size),
});
export type VolumeUpdate = Static<typeof VolumeUpdate>;
/** A network volume as replies show it. */
export const Volume = Type.Object({
  id: Type.String(),
  name: Type.String(),
  size: Type.Integer(),
  dataCenterId: Type.String(),
  usedBytes: Type.Optional(Type.Integer({ description: "How much it held when it was last measured." })),
  usedAt: Type.Optional(Type.String({ format: "date-time", description: "When it was last measured." })),
  usedAtLeast: Type.Optional(
    Type.Boolean({ description: "If true, not all of it could be read, and usedBytes is a minimum." }),
  ),
  sizePassed: Type.Optional(Type.Boolean({ description: "Whether it holds more than its size." })),
  sizeEnforced: Type.Optional(
    Type.Boolean({
      description: "Whether the file system enforces its size; if not, sizePassed only reports an excess.",
    }),
  ),
});
export type Volume = Static<typeof Volume>;
