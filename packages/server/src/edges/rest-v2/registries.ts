import * as api from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Refusal } from "../../errors.js";
import { seesMore, visibleRegistryAuths } from "../../operations/access/visible.js";
import type { Parts } from "../../operations/needs.js";
import { showRegistryAuth } from "../../operations/show-resources.js";
import {
  createRegistryAuth,
  deleteRegistryAuth,
  ownRegistryAuth,
} from "../../operations/templates/save-registry-auth.js";
import { idOf } from "../shared/params.js";
import { sendList } from "../shared/replies/send-list.js";
import { route } from "./route-schema.js";

const tag = "registries";
const one = { tag, names: ["containerRegistryAuthId"] };

/** Credentials of container registries: the route that takes a body. */
export function registryWrites(app: FastifyInstance, parts: Parts): void {
  app.post(
    "/registries",
    route({
      operationId: "createRegistry",
      summary: "Store the credentials of a container registry",
      tag,
      body: api.RegistryAuthCreate,
      reply: api.RegistryAuth,
      status: 201,
    }),
    async (request, reply) => {
      const auth = await createRegistryAuth(parts, request.caller, request.body as api.RegistryAuthCreate);
      return reply.code(201).send(showRegistryAuth(auth));
    },
  );
}

/** Credentials of container registries, which are never shown: the routes without a body. */
export function registryReads(app: FastifyInstance, parts: Parts): void {
  app.get(
    "/registries",
    route({ operationId: "listRegistries", summary: "List container registries", tag, reply: api.v2.Registries }),
    async ({ caller }, reply) => sendList(reply, visibleRegistryAuths(parts, caller), showRegistryAuth, "registries"),
  );
  app.get(
    "/registries/:containerRegistryAuthId",
    route({ ...one, operationId: "getRegistry", summary: "Show a container registry", reply: api.RegistryAuth }),
    async (request) => showRegistryAuth(own(parts, request)),
  );
  app.delete(
    "/registries/:containerRegistryAuthId",
    route({ ...one, operationId: "deleteRegistry", summary: "Delete the credentials of a container registry" }),
    async (request, reply) => {
      await deleteRegistryAuth(parts, request.caller, own(parts, request));
      return reply.code(204).send();
    },
  );
}

function own(parts: Parts, request: FastifyRequest) {
  seesMore(request.caller, "container registries");
  return ownRegistryAuth(parts, request.caller, idOf(request, "containerRegistryAuthId"));
}

/** Things of the hosted service that mean nothing here: their lists are empty, and they cannot be made. */
export const absent = [
  { path: "/registries/delegations", field: "delegations", what: "Delegations to Amazon's registry" },
  { path: "/clusters", field: "clusters", what: "Clusters" },
  { path: "/global-volumes", field: "globalVolumes", what: "Global volumes" },
] as const;

/** The lists of what does not exist here. */
export function absentReads(app: FastifyInstance): void {
  for (const { path, field, what } of absent) {
    app.get(path, { schema: { hide: true } }, async () => ({ [field]: [] }));
    for (const method of ["GET", "PATCH", "DELETE"] as const)
      app.route({
        method,
        url: `${path}/:absentId`,
        schema: { hide: true },
        handler: async () => {
          throw new Refusal("NOT_FOUND", `${what} do not exist here.`);
        },
      });
  }
}

/** Refuses to make what does not exist here. */
export function absentWrites(app: FastifyInstance): void {
  for (const { path, what } of absent)
    app.post(path, { schema: { hide: true, body: { type: "object", properties: {} } } }, async () => {
      throw new Refusal("NOT_OFFERED_HERE", `${what} exist only at the hosted service.`);
    });
}
