import * as api from "@millrace/api";
import type { FastifyInstance } from "fastify";
import Type from "typebox";
import { visibleVolumes, volumeFor } from "../../operations/access/visible.js";
import type { Parts } from "../../operations/needs.js";
import { showVolume } from "../../operations/show-resources.js";
import { createVolume, deleteVolume, ownVolume, updateVolume } from "../../operations/volumes/save-volume.js";
import { idOf, params } from "../shared/params.js";
import { sendList } from "../shared/replies/send-list.js";
import { deletion, doc, patches, writeErrors } from "./route-schema.js";

/** Network volumes: the routes that take a body. */
export function volumeWrites(app: FastifyInstance, parts: Parts): void {
  const reply = { 200: api.Volume, ...writeErrors };
  app.post(
    "/networkvolumes",
    {
      schema: {
        summary: "Create a network volume",
        tags: ["network volumes"],
        body: api.VolumeCreate,
        response: reply,
      },
    },
    async (request) => showVolume(parts, await createVolume(parts, request.caller, request.body as api.VolumeCreate)),
  );
  const schema = {
    summary: "Rename or grow a network volume",
    tags: ["network volumes"],
    params: params("networkVolumeId"),
    body: api.VolumeUpdate,
    response: reply,
  };
  patches(app, "/networkvolumes/:networkVolumeId", schema, async (request) => {
    const volume = ownVolume(parts, request.caller, idOf(request, "networkVolumeId"));
    return showVolume(parts, await updateVolume(parts, request.caller, volume, request.body as api.VolumeUpdate));
  });
}

/** Network volumes: the routes without a body. */
export function volumeReads(app: FastifyInstance, parts: Parts): void {
  app.get("/networkvolumes", doc("List network volumes", "network volumes", Type.Array(api.Volume)), (request, reply) =>
    sendList(reply, visibleVolumes(parts, request.caller), (volume) =>
      volumeFor(request.caller, showVolume(parts, volume)),
    ),
  );
  app.get(
    "/networkvolumes/:networkVolumeId",
    doc("Show a network volume", "network volumes", api.Volume, { params: params("networkVolumeId") }),
    async (request) =>
      volumeFor(request.caller, showVolume(parts, ownVolume(parts, request.caller, idOf(request, "networkVolumeId")))),
  );
  app.delete(
    "/networkvolumes/:networkVolumeId",
    deletion("Delete a network volume and its files", "network volumes", "networkVolumeId"),
    async (request, reply) => {
      await deleteVolume(parts, request.caller, idOf(request, "networkVolumeId"));
      return reply.code(204).send();
    },
  );
}
