import * as api from "@millrace/api";
import type { FastifyInstance } from "fastify";
import Type from "typebox";
import { showHosts } from "../../../operations/hosts/show-hosts.js";
import type { Parts } from "../../../operations/needs.js";
import { doc } from "../route-schema.js";

/** The machines that run workers. */
export function hostRoutes(app: FastifyInstance, parts: Parts): void {
  app.get(
    "/hosts",
    doc("The machines that run workers, with their GPUs", "hosts", Type.Array(api.HostView)),
    async ({ caller }) => showHosts(parts, caller),
  );
}
