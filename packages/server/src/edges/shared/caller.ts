import type { FastifyRequest } from "fastify";
import type { ApiKey } from "../../domain/access/key.js";
import type { Caller } from "../../operations/access/change-as.js";

/** A request's key, and where the request came from, for the audit log. */
export const callerOf = ({ ip, id }: FastifyRequest, key: ApiKey): Caller => ({
  ...key,
  via: { address: ip.replace(/^::ffff:(?=\d+\.)/, "").slice(0, 64), requestId: id },
});
