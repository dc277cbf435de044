import * as api from "@millrace/api";
import type { FastifyInstance } from "fastify";
import Type from "typebox";
import { releaseNumbers } from "../../domain/endpoints/release.js";
import { invalid } from "../../errors.js";
import { restartWorkers, rollBack } from "../../operations/endpoints/releases.js";
import { ownEndpoint } from "../../operations/endpoints/save-endpoint.js";
import type { Parts } from "../../operations/needs.js";
import { idOf, params } from "../shared/params.js";
import { readRelease } from "../shared/release-reads.js";
import { sendList } from "../shared/replies/send-list.js";
import { atOnce, isNow } from "./at-once.js";
import { doc } from "./route-schema.js";

/** The versions of an endpoint, and rollbacks. */
export function releaseRoutes(app: FastifyInstance, parts: Parts): void {
  app.get(
    "/endpoints/:endpointId/releases",
    doc("The versions of an endpoint, newest first", "releases", Type.Array(api.ReleaseView), {
      params: params("endpointId"),
    }),
    async (request, reply) => {
      const endpoint = ownEndpoint(parts, request.caller, idOf(request, "endpointId"));
      return sendList(reply, releaseNumbers(endpoint), (n) => readRelease(parts, request.caller, endpoint, n));
    },
  );
  app.post(
    "/endpoints/:endpointId/restart",
    doc("Replace all workers by new ones", "releases", api.Endpoint, {
      params: params("endpointId"),
      querystring: atOnce,
    }),
    async (request) => restartWorkers(parts, request.caller, idOf(request, "endpointId"), { isNow: isNow(request) }),
  );
  app.post(
    "/endpoints/:endpointId/releases/:version/rollback",
    doc("Roll back: make a new version from an earlier one", "releases", api.Endpoint, {
      params: params("endpointId", "version"),
    }),
    async (request) => {
      const version = idOf(request, "version");
      if (!/^[1-9]\d{0,8}$/.test(version)) throw invalid("Name the version by its number.");
      return rollBack(parts, request.caller, idOf(request, "endpointId"), Number(version));
    },
  );
}
