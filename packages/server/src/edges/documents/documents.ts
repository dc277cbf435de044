import swagger from "@fastify/swagger";
import { ignoredHeader } from "@millrace/api";
import type { FastifyInstance } from "fastify";
import { jsonType } from "../shared/replies/replies.js";
import { descriptions } from "./descriptions.js";
import { errorReply, retryAfter } from "./error-replies.js";
import { examples } from "./examples.js";
import { operationIds } from "./operation-ids.js";
import { replyExample, type Schema } from "./reply-examples.js";

interface Reply {
  readonly description?: string;
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}
interface Operation {
  readonly operationId?: string;
  readonly tags?: readonly string[];
  readonly responses: Readonly<Record<string, Reply>>;
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: object }>> };
}
type Paths = Record<string, Record<string, Operation>>;

/** The OpenAPI document of the routes registered in this scope, at `prefix`/openapi.json; returns what gives it. */
export async function documented(
  app: FastifyInstance,
  title: string,
  version: string,
  prefix: string,
  note = "",
): Promise<() => object> {
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title,
        version,
        description: `Self-hosted serverless compute.${note}`,
        license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
      },
      servers: [{ url: "/", description: "The server that this document comes from" }],
      components: { securitySchemes: { ApiKey: { type: "http", scheme: "bearer" } } },
      security: [{ ApiKey: [] }],
    },
  });
  let page: Buffer | undefined;
  app.get(`${prefix}/openapi.json`, { schema: { hide: true } }, async (_request, reply) => {
    page ??= Buffer.from(JSON.stringify(named(app.swagger())));
    return reply.header("content-type", jsonType).send(page);
  });
  return () => named(app.swagger());
}

/**
 * The document with a name, a tag, a description and examples for each operation. Errors are components, so that each is
 * described once. Operations of the queue have no tag of their own.
 */
function named(document: { paths?: object; components?: object }): object {
  const responses: Record<string, object> = {};
  const paths = Object.entries((document.paths ?? {}) as Paths).map(([path, methods]) => {
    const operations = Object.entries(methods).map(([method, operation]) => {
      const { operationId = operationIds[`${method} ${path}`] ?? "", tags = ["jobs"] } = operation;
      const description = descriptions[operationId]?.replaceAll("\n", " ");
      const replies = Object.entries(operation.responses).map(([status, reply]) => {
        const error = errorOf(Number(status), reply);
        if (!error)
          return [status, { ...withExamples(reply), ...(ignoresFields(operation) && namingIgnored) }] as const;
        responses[error.name] = error.reply;
        return [status, { $ref: `#/components/responses/${error.name}` }] as const;
      });
      const whole = { ...operation, operationId, tags, description, responses: Object.fromEntries(replies) };
      return [method, { ...whole, ...withExample(operation, operationId) }] as const;
    });
    return [path, Object.fromEntries(operations)] as const;
  });
  const components = { ...document.components, responses, headers: { Ignored: ignored, RetryAfter: retryAfter } };
  return { ...document, components, paths: Object.fromEntries(paths) };
}

/** Whether unknown fields of its body are ignored; a few operations refuse them. */
const ignoresFields = ({ requestBody }: Operation): boolean =>
  Object.values(requestBody?.content ?? {}).some(({ schema = {} }) => !("additionalProperties" in schema));

const ignored = {
  description:
    "The fields of the body that have no effect, separated by commas: unknown ones, and those that are taken only.",
  schema: { type: "string" },
  example: "workersMxa",
};
const namingIgnored = { headers: { [ignoredHeader]: { $ref: "#/components/headers/Ignored" } } };

function errorOf(status: number, { content = {} }: Reply): ReturnType<typeof errorReply> {
  const [type, media] = Object.entries(content)[0] ?? [];
  return status < 400 || !type || !media ? undefined : errorReply(status, type, media.schema);
}

function withExamples(reply: Reply): object {
  const description = reply.description === "Default Response" ? "Done." : reply.description;
  if (!reply.content) return { ...reply, description };
  const content = Object.entries(reply.content).map(([type, media]) => [
    type,
    { ...media, example: replyExample(type, media.schema) },
  ]);
  return { ...reply, description, content: Object.fromEntries(content) };
}

function withExample({ requestBody }: Operation, operationId: string): Pick<Operation, "requestBody"> {
  const example = examples[operationId];
  if (!requestBody || example === undefined) return {};
  const content = Object.entries(requestBody.content).map(([type, media]) => [type, { ...media, example }]);
  return { requestBody: { ...requestBody, content: Object.fromEntries(content) } };
}
