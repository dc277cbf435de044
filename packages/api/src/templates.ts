import Type, { type Static } from "typebox";
import { choice, Env, list, orNull, text, visible, visibleLines } from "./fields.js";

export const templateCategories = ["NVIDIA", "AMD", "CPU"] as const;

/** A port from 1 to 65535, with http or tcp. */
export const portPattern = "^([1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5])/(http|tcp)$";

const templateFields = {
  category: orNull(choice(templateCategories, "The compute category.")),
  containerDiskInGb: orNull(Type.Integer({ minimum: 0, maximum: 100_000, description: "Container disk, in GB." })),
  containerRegistryAuthId: orNull(text("Registry credentials for a private image.")),
  dockerEntrypoint: orNull(list("Overrides the image's ENTRYPOINT; [] keeps it.", { pattern: visibleLines })),
  dockerStartCmd: orNull(list("Overrides the image's CMD; [] keeps it.", { pattern: visibleLines })),
  env: orNull(Env),
  isPublic: orNull(Type.Boolean()),
  isServerless: orNull(Type.Boolean()),
  ports: orNull(
    Type.Array(Type.String({ pattern: portPattern, title: "number/http or number/tcp, as in 8888/http" }), {
      description: "The ports that it listens on.",
      maxItems: 100,
    }),
  ),
  readme: orNull(Type.String({ maxLength: 100_000, pattern: visibleLines })),
  volumeInGb: orNull(Type.Integer({ minimum: 0, maximum: 100_000 })),
  volumeMountPath: orNull(text("Where a volume is mounted: an absolute path, not below /proc, /sys or /dev.")),
};

/** Body of `POST /templates`. */
export const TemplateCreate = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 191, pattern: visible }),
  imageName: Type.String({ minLength: 1, maxLength: 4_096, description: "A container image, or a path to a handler." }),
  ...templateFields,
});
export type TemplateCreate = Static<typeof TemplateCreate>;

/** Body of `PATCH /templates/{id}` and `POST /templates/{id}/update`. */
export const TemplateUpdate = Type.Object({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 191, pattern: visible })),
  imageName: Type.Optional(Type.String({ minLength: 1, maxLength: 4_096 })),
  ...templateFields,
});
export type TemplateUpdate = Static<typeof TemplateUpdate>;

/** A template as replies show it. */
export const Template = Type.Object({
  id: Type.String(),
  name: Type.String(),
  imageName: Type.String(),
  category: choice(templateCategories, "The compute category."),
  containerDiskInGb: Type.Integer(),
  containerRegistryAuthId: Type.Optional(Type.String()),
  dockerEntrypoint: Type.Array(Type.String()),
  dockerStartCmd: Type.Array(Type.String()),
  earned: Type.Number(),
  env: Type.Record(Type.String(), Type.String()),
  isPublic: Type.Boolean(),
  isRunpod: Type.Boolean(),
  isServerless: Type.Boolean(),
  ports: Type.Array(Type.String()),
  readme: Type.String(),
  runtimeInMin: Type.Integer(),
  volumeInGb: Type.Integer(),
  volumeMountPath: Type.String(),
});
export type Template = Static<typeof Template>;
