import Type, { type Static } from "typebox";
import { choice, Env, text, visibleLines } from "../fields.js";
import { cpuFlavors } from "../machines.js";
import { portPattern } from "../templates.js";

const port = Type.String({
  pattern: portPattern,
  title: "number/http or number/tcp, as in 8888/http",
});

/** The processors that a worker or pod without a GPU asks for. */
export const Cpu = Type.Object({
  id: choice(cpuFlavors, "The CPU flavour."),
  vcpuCount: Type.Integer({ minimum: 1, maximum: 1_024 }),
});

/** What a container is made of, in requests and replies. */
export const containerFields = {
  image: Type.Optional(
    Type.String({ minLength: 1, maxLength: 4_096, description: "A container image, or a path to a handler." }),
  ),
  args: Type.Optional(
    text("The start command, split as a shell would; empty keeps the image's.", { pattern: visibleLines }),
  ),
  disk: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000, description: "Container disk, in GB." })),
  ports: Type.Optional(Type.Array(port, { maxItems: 100, description: "The ports that it listens on." })),
  env: Type.Optional(Env),
  registry: Type.Optional(
    Type.Union([text("Credentials for a private image, by id."), Type.Null()], { description: "null: none." }),
  ),
};
const Container = Type.Object(containerFields);
export type Container = Static<typeof Container>;

/** What is created needs an image of its own or that of a template. */
export const imageOrTemplate = { anyOf: [{ required: ["image"] }, { required: ["templateId"] }] };
