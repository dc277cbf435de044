import type { FastifyRequest } from "fastify";
import type { Via } from "../../domain/access/audit.js";

/** Where a request came from, for the audit log. */
export const viaOf = ({ ip, id }: FastifyRequest): Via => ({
  address: ip.replace(/^::ffff:(?=\d+\.)/, "").slice(0, 64),
  requestId: id,
});
