import * as api from "@millrace/api";
import type { FastifyInstance } from "fastify";
import Type from "typebox";
import type { Volume } from "../../domain/endpoints/volume.js";
import { visibleVolumes, volumeFor } from "../../operations/access/visible.js";
import type { Parts } from "../../operations/needs.js";
import { showVolume } from "../../operations/show-resources.js";
import { createVolume, deleteVolume, ownVolume, updateVolume } from "../../operations/volumes/save-volume.js";
import { idOf, params } from "../shared/params.js";
import { sendList } from "../shared/replies/send-list.js";
import { deletion, doc, patches, writeErrors } from "./route-schema.js";

type VolumeParts = Parts & { readonly isSdk: boolean };

/** A volume as callers see it; under `/sdk` without our additions, which a public client refuses. */
function viewer(parts: VolumeParts): (volume: Volume) => api.Volume {
  if (!parts.isSdk) return (volume) => showVolume(parts, volume);
  return ({ id, name, size, dataCenterId }) => ({ id, name, size, dataCenterId });
}

/** Network volumes: the routes that take a body. */
export function volumeWrites(app: FastifyInstance, parts: VolumeParts): void {
  const show = viewer(parts);
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
    async (request) => show(await createVolume(parts, request.caller, request.body as api.VolumeCreate)),
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
    return show(await updateVolume(parts, request.caller, volume, request.body as api.VolumeUpdate));
  });
}

/** Network volumes: the routes without a body. */
export function volumeReads(app: FastifyInstance, parts: VolumeParts): void {
  const show = viewer(parts);
  app.get("/networkvolumes", doc("List network volumes", "network volumes", Type.Array(api.Volume)), (request, reply) =>
    sendList(reply, visibleVolumes(parts, request.caller), (volume) => volumeFor(request.caller, show(volume))),
  );
  app.get(
    "/networkvolumes/:networkVolumeId",
    doc("Show a network volume", "network volumes", api.Volume, { params: params("networkVolumeId") }),
    async (request) =>
      volumeFor(request.caller, show(ownVolume(parts, request.caller, idOf(request, "networkVolumeId")))),
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
