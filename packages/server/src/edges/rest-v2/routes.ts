import type { FastifyInstance } from "fastify";
import { ignoreBodies } from "../shared/bodies/bodies.js";
import { takeJson } from "../shared/bodies/json-body.js";
import { admitCallers } from "../shared/management.js";
import { otherMethods } from "../shared/methods.js";
import { lendRooms } from "../shared/replies/room.js";
import { accountReads, accountWrites } from "./account.js";
import { billingReads } from "./billing.js";
import { catalogRoutes } from "./catalog.js";
import { logRoutes } from "./logs.js";
import { podReads, podWrites } from "./pods.js";
import { tellProblems } from "./problems.js";
import { absentReads, absentWrites, registryReads, registryWrites } from "./registries.js";
import { limitRequests } from "./request-quota.js";
import { buildReads, type RestV2Parts, serverlessReads, serverlessWrites } from "./serverless.js";
import { publicTemplateReads, templateReads, templateWrites } from "./templates.js";
import { volumeReads, volumeWrites } from "./volumes.js";

/** REST v2: the same operations as v1 in nested bodies and enveloped lists (decisions: Management). */
export async function restV2Routes(app: FastifyInstance, parts: RestV2Parts): Promise<void> {
  app.setSerializerCompiler(() => JSON.stringify);
  tellProblems(app, parts);
  const refuseOthers = otherMethods(app);
  admitCallers(app, parts);
  if (parts.quota) limitRequests(app, parts.quota, parts);
  await app.register(async (scope) => {
    lendRooms(scope, parts);
    takeJson(scope);
    serverlessWrites(scope, parts);
    templateWrites(scope, parts);
    volumeWrites(scope, parts);
    registryWrites(scope, parts);
    accountWrites(scope, parts);
    podWrites(scope, parts);
    absentWrites(scope);
  });
  await app.register(async (scope) => {
    lendRooms(scope, parts);
    ignoreBodies(scope);
    serverlessReads(scope, parts);
    templateReads(scope, parts);
    volumeReads(scope, parts);
    registryReads(scope, parts);
    catalogRoutes(scope, parts);
    publicTemplateReads(scope, parts);
    accountReads(scope, parts);
    podReads(scope, parts);
    billingReads(scope, parts);
    buildReads(scope, parts);
    absentReads(scope);
  });
  await app.register(async (scope) => {
    ignoreBodies(scope);
    logRoutes(scope, parts); // no room needed: a followed log has a budget of its own
  });
  refuseOthers();
}
