import * as api from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import Type from "typebox";
import type { ApiKey } from "../../domain/access/key.js";
import {
  createKey,
  deleteKey,
  keysOf,
  rotateKey,
  showKeys,
  shownKey,
  updateKey,
} from "../../operations/access/save-key.js";
import {
  createUser,
  deleteUser,
  ownUser,
  rotateWebhookSecret,
  showUser,
  updateUser,
  usersFor,
} from "../../operations/access/save-user.js";
import type { Parts } from "../../operations/needs.js";
import { idOf, params } from "../shared/params.js";
import { sendList } from "../shared/replies/send-list.js";
import { deletion, doc, writeErrors } from "./route-schema.js";

const [users, keys] = ["users", "API keys"] as const;
const user = "/users/:userId";
const key = "/apikeys/:keyId";
const ofUser = Type.Object({
  userId: Type.Optional(Type.String({ description: "The user whose keys to list; for admins." })),
});
const estate = Type.Object({
  transferTo: Type.Optional(
    Type.String({ description: "The id of the user to give the deleted user's resources to." }),
  ),
  deleteResources: Type.Optional(
    Type.String({ description: "true: also deletes the user's resources, with the files on volumes." }),
  ),
});

type Query = Record<string, string | undefined>;

async function shown(parts: Parts, made: ApiKey) {
  const [view] = await showKeys(parts, [made]);
  return view;
}

/** Users and keys: the routes that take a body. */
export function accessWrites(app: FastifyInstance, parts: Parts): void {
  const write = (summary: string, tag: string, body: Type.TSchema, reply: Type.TSchema, more: object = {}) => ({
    schema: { summary, tags: [tag], body, response: { 200: reply, ...writeErrors }, ...more },
  });
  app.post("/users", write("Create a user", users, api.UserCreate, api.NewUser), async (request) => {
    const made = await createUser(parts, request.caller, request.body as api.UserCreate);
    return { ...showUser(made.user), webhookSecret: made.webhookSecret };
  });
  app.patch(
    user,
    write("Change a user's name or role; only the fields sent change", users, api.UserUpdate, api.User, {
      params: params("userId"),
    }),
    async (request) =>
      showUser(await updateUser(parts, request.caller, idOf(request, "userId"), request.body as api.UserUpdate)),
  );
  app.post("/apikeys", write("Create an API key", keys, api.ApiKeyCreate, api.NewApiKey), async (request) => {
    const made = await createKey(parts, request.caller, request.body as api.ApiKeyCreate);
    return { ...(await shown(parts, made.key)), key: made.text };
  });
  app.patch(
    key,
    write("Change a key's name, scope or expiry; only the fields sent change", keys, api.ApiKeyUpdate, api.ApiKey, {
      params: params("keyId"),
    }),
    async (request) =>
      shown(parts, await updateKey(parts, request.caller, idOf(request, "keyId"), request.body as api.ApiKeyUpdate)),
  );
  app.post(
    `${key}/rotate`,
    write("Replace a key's text; the old text keeps working for a while", keys, api.ApiKeyRotate, api.NewApiKey, {
      params: params("keyId"),
    }),
    async (request) => {
      const { overlapSeconds } = request.body as api.ApiKeyRotate;
      const made = await rotateKey(parts, request.caller, idOf(request, "keyId"), overlapSeconds);
      return { ...(await shown(parts, made.key)), key: made.text };
    },
  );
}

/** Users and keys: the routes without a body. */
export function accessReads(app: FastifyInstance, parts: Parts): void {
  const userId = (request: FastifyRequest) => idOf(request, "userId");
  app.get(
    "/users",
    doc("List users: all of them for an admin, otherwise only yourself", users, Type.Array(api.User)),
    (request, reply) => sendList(reply, usersFor(parts, request.caller), showUser),
  );
  app.get(user, doc("Show a user", users, api.User, { params: params("userId") }), async (request) =>
    showUser(ownUser(parts, request.caller, userId(request))),
  );
  app.post(
    `${user}/webhook-secret/rotate`,
    doc(
      "Replace the secret that signs a user's webhooks; the old secret also signs for one more day",
      users,
      api.NewWebhookSecret,
      {
        params: params("userId"),
      },
    ),
    async (request) => ({ webhookSecret: await rotateWebhookSecret(parts, request.caller, userId(request)) }),
  );
  app.delete(
    user,
    deletion("Delete a user with its keys", users, "userId", { querystring: estate }),
    async (request, reply) => {
      const { transferTo, deleteResources } = request.query as Query;
      const what = { ...(transferTo ? { transferTo } : {}), deleteResources: deleteResources === "true" };
      await deleteUser(parts, request.caller, userId(request), what);
      return reply.code(204).send();
    },
  );
  app.get(
    "/apikeys",
    doc("List your API keys, without their texts", keys, Type.Array(api.ApiKey), { querystring: ofUser }),
    async (request, reply) => {
      const list = keysOf(parts, request.caller, (request.query as Query).userId);
      return sendList(reply, await showKeys(parts, list), (each) => each);
    },
  );
  app.get(
    key,
    doc("Show an API key, without its text", keys, api.ApiKey, { params: params("keyId") }),
    async (request) => shown(parts, shownKey(parts, request.caller, idOf(request, "keyId"))),
  );
  app.delete(key, deletion("Revoke an API key", keys, "keyId"), async (request, reply) => {
    await deleteKey(parts, request.caller, idOf(request, "keyId"));
    return reply.code(204).send();
  });
}
