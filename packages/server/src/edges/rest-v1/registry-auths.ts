import * as api from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import Type from "typebox";
import { seesMore, visibleRegistryAuths } from "../../operations/access/visible.js";
import type { Parts } from "../../operations/needs.js";
import { showRegistryAuth } from "../../operations/show-resources.js";
import {
  createRegistryAuth,
  deleteRegistryAuth,
  ownRegistryAuth,
} from "../../operations/templates/save-registry-auth.js";
import { idOf, params } from "../shared/params.js";
import { sendList } from "../shared/replies/send-list.js";
import { deletion, doc, writeErrors } from "./route-schema.js";

const path = "/containerregistryauth";
const tag = "container registry auths";
const id = "containerRegistryAuthId";

/** Credentials of container registries: they can be stored, but never read. */
export function registryAuthWrites(app: FastifyInstance, parts: Parts): void {
  const summary = "Store the credentials of a container registry";
  const response = { 200: api.RegistryAuth, ...writeErrors };
  app.post(path, { schema: { summary, tags: [tag], body: api.RegistryAuthCreate, response } }, async (request) =>
    showRegistryAuth(await createRegistryAuth(parts, request.caller, request.body as api.RegistryAuthCreate)),
  );
}

/** The routes without a body. */
export function registryAuthReads(app: FastifyInstance, parts: Parts): void {
  const own = (request: FastifyRequest) => {
    seesMore(request.caller, "container registry auths");
    return ownRegistryAuth(parts, request.caller, idOf(request, id));
  };
  app.get(path, doc("List container registry auths", tag, Type.Array(api.RegistryAuth)), async ({ caller }, reply) =>
    sendList(reply, visibleRegistryAuths(parts, caller), showRegistryAuth),
  );
  app.get(
    `${path}/:${id}`,
    doc("Show a container registry auth", tag, api.RegistryAuth, { params: params(id) }),
    async (request) => showRegistryAuth(own(request)),
  );
  app.delete(`${path}/:${id}`, deletion("Delete a container registry auth", tag, id), async (request, reply) => {
    await deleteRegistryAuth(parts, request.caller, own(request));
    return reply.code(204).send();
  });
}
