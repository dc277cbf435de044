import swagger from "@fastify/swagger";
import type { FastifyInstance } from "fastify";
import { jsonType } from "../shared/replies/replies.js";
import { descriptions } from "./descriptions.js";
import { examples } from "./examples.js";
import { operationIds } from "./operation-ids.js";

interface Operation {
  readonly operationId?: string;
  readonly tags?: readonly string[];
  readonly requestBody?: { readonly content: Readonly<Record<string, object>> };
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

/** The document with a name, a tag, a description and an example for each operation. Those of the queue have no tag of their own. */
function named(document: { paths?: object }): object {
  const paths = Object.entries((document.paths ?? {}) as Paths).map(([path, methods]) => {
    const operations = Object.entries(methods).map(([method, operation]) => {
      const { operationId = operationIds[`${method} ${path}`] ?? "", tags = ["jobs"] } = operation;
      const description = descriptions[operationId]?.replaceAll("\n", " ");
      return [
        method,
        { ...operation, operationId, tags, description, ...withExample(operation, operationId) },
      ] as const;
    });
    return [path, Object.fromEntries(operations)] as const;
  });
  return { ...document, paths: Object.fromEntries(paths) };
}

function withExample({ requestBody }: Operation, operationId: string): Pick<Operation, "requestBody"> {
  const example = examples[operationId];
  if (!requestBody || example === undefined) return {};
  const content = Object.entries(requestBody.content).map(([type, media]) => [type, { ...media, example }]);
  return { requestBody: { ...requestBody, content: Object.fromEntries(content) } };
}
