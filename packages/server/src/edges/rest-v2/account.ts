import { v2 } from "@millrace/api";
import type { FastifyInstance } from "fastify";
import { savePubKey, sshKeysOf } from "../../operations/access/ssh-keys.js";
import { seesMore } from "../../operations/access/visible.js";
import type { Parts } from "../../operations/needs.js";
import { route } from "./route-schema.js";

const path = "/account/ssh-keys";
const tag = "account";

/** The SSH keys of the caller's user: the route that takes a body. */
export function accountWrites(app: FastifyInstance, parts: Parts): void {
  app.put(
    path,
    route({
      operationId: "updateSshKeys",
      summary: "Replace the SSH keys that pods accept",
      tag,
      body: v2.SshKeys,
      reply: v2.SshKeys,
    }),
    async (request) => {
      const { keys } = request.body as v2.SshKeys;
      return { keys: await savePubKey(parts, request.caller, keys.join("\n")) };
    },
  );
}

/** The SSH keys of the caller's user. */
export function accountReads(app: FastifyInstance, parts: Parts): void {
  app.get(
    path,
    route({ operationId: "getSshKeys", summary: "The SSH keys that pods accept", tag, reply: v2.SshKeys }),
    async ({ caller }) => {
      seesMore(caller, "its user's settings");
      return { keys: sshKeysOf(parts.registry.user(caller.ownerNo)?.pubKey ?? "") };
    },
  );
}
