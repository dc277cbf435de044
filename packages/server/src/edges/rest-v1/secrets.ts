import * as api from "@millrace/api";
import type { FastifyInstance } from "fastify";
import Type from "typebox";
import {
  createSecret,
  deleteSecret,
  ownSecret,
  secretsOf,
  showSecret,
  updateSecret,
} from "../../operations/access/save-secret.js";
import type { Parts } from "../../operations/needs.js";
import { idOf, params } from "../shared/params.js";
import { sendList } from "../shared/replies/send-list.js";
import { deletion, doc, writeErrors } from "./route-schema.js";

const tag = "secrets";

/** Secrets for workers' environments: they can be stored, but never read. */
export function secretWrites(app: FastifyInstance, parts: Parts): void {
  const summary = "Store a secret for workers' environments";
  const response = { 200: api.Secret, ...writeErrors };
  app.post("/secrets", { schema: { summary, tags: [tag], body: api.SecretCreate, response } }, async (request) =>
    showSecret(await createSecret(parts, request.caller, request.body as api.SecretCreate)),
  );
  const change = "Change a secret's value or description; only the fields sent change, and null clears the description";
  app.patch(
    "/secrets/:secretId",
    { schema: { summary: change, tags: [tag], params: params("secretId"), body: api.SecretUpdate, response } },
    async (request) =>
      showSecret(
        await updateSecret(parts, request.caller, idOf(request, "secretId"), request.body as api.SecretUpdate),
      ),
  );
}

/** The routes without a body. */
export function secretReads(app: FastifyInstance, parts: Parts): void {
  app.get("/secrets", doc("List secrets, without their values", tag, Type.Array(api.Secret)), async (request, reply) =>
    sendList(reply, await secretsOf(parts, request.caller), showSecret),
  );
  app.get(
    "/secrets/:secretId",
    doc("Show a secret, without its value", tag, api.Secret, { params: params("secretId") }),
    async (request) => showSecret(await ownSecret(parts, request.caller, idOf(request, "secretId"))),
  );
  app.delete("/secrets/:secretId", deletion("Delete a secret", tag, "secretId"), async (request, reply) => {
    await deleteSecret(parts, request.caller, idOf(request, "secretId"));
    return reply.code(204).send();
  });
}
