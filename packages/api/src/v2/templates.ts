import Type, { type Static } from "typebox";
import { choice, text, visible } from "../fields.js";
import { templateCategories } from "../templates.js";
import { containerFields } from "./container.js";

const name = Type.String({ minLength: 1, maxLength: 191, pattern: visible });
const Mounts = Type.Object({
  persistent: Type.Optional(
    Type.Object({
      size: Type.Integer({ minimum: 10, maximum: 100_000, description: "GB." }),
      path: text("Where it is mounted: an absolute path."),
    }),
  ),
});
const settings = {
  ...containerFields,
  mounts: Type.Optional(Mounts),
  serverless: Type.Optional(Type.Boolean()),
  public: Type.Optional(Type.Boolean()),
  category: Type.Optional(choice(templateCategories, "The compute category.")),
};

/** Body of `POST /v2/templates`. */
export const TemplateCreate = Type.Object({
  ...settings,
  name,
  image: Type.String({ minLength: 1, maxLength: 4_096, description: "A container image, or a path to a handler." }),
});
export type TemplateCreate = Static<typeof TemplateCreate>;

/** Body of `PATCH /v2/templates/{id}`: only the fields sent change. */
export const TemplateUpdate = Type.Object({ ...settings, name: Type.Optional(name) });
export type TemplateUpdate = Static<typeof TemplateUpdate>;

/** A template as REST v2 shows it. */
export const Template = Type.Object({
  ...containerFields,
  id: Type.String(),
  name: Type.String(),
  mounts: Mounts,
  serverless: Type.Boolean(),
  public: Type.Boolean(),
  category: choice(templateCategories, "The compute category."),
});
export type Template = Static<typeof Template>;

/** Reply of `GET /v2/templates`. */
export const Templates = Type.Object({ templates: Type.Array(Template) });
