import { v2 } from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { ApiKey } from "../../domain/access/key.js";
import type { Volume } from "../../domain/endpoints/volume.js";
import { invalid, Refusal } from "../../errors.js";
import { visibleVolumes, volumeFor } from "../../operations/access/visible.js";
import type { Parts } from "../../operations/needs.js";
import { createVolume, deleteVolume, ownVolume, updateVolume } from "../../operations/volumes/save-volume.js";
import { idOf } from "../shared/params.js";
import { sendList } from "../shared/replies/send-list.js";
import { route } from "./route-schema.js";

const tag = "network volumes";
const one = { tag, names: ["networkVolumeId"] };

/** Network volumes: the routes that take a body. */
export function volumeWrites(app: FastifyInstance, parts: Parts): void {
  app.post(
    "/network-volumes",
    route({
      operationId: "createNetworkVolume",
      summary: "Create a network volume",
      tag,
      body: v2.VolumeCreate,
      reply: v2.Volume,
      status: 201,
    }),
    async (request, reply) => {
      const { name, size, dataCenter, type } = request.body as v2.VolumeCreate;
      if (type === "HIGH_PERFORMANCE") throw invalid("There are no HIGH_PERFORMANCE volumes here: use STANDARD.");
      const volume = await createVolume(parts, request.caller, { name, size, dataCenterId: dataCenter });
      return reply.code(201).send(volumeView(request.caller, volume));
    },
  );
  app.patch(
    "/network-volumes/:networkVolumeId",
    route({
      ...one,
      operationId: "updateNetworkVolume",
      summary: "Rename or grow a network volume",
      body: v2.VolumeUpdate,
      reply: v2.Volume,
    }),
    async (request) => {
      const volume = own(parts, request);
      return volumeView(
        request.caller,
        await updateVolume(parts, request.caller, volume, request.body as v2.VolumeUpdate),
      );
    },
  );
}

/** Network volumes: the routes without a body. */
export function volumeReads(app: FastifyInstance, parts: Parts): void {
  app.get(
    "/network-volumes",
    route({ operationId: "listNetworkVolumes", summary: "List network volumes", tag, reply: v2.Volumes }),
    ({ caller }, reply) =>
      sendList(reply, visibleVolumes(parts, caller), (volume) => volumeView(caller, volume), "networkVolumes"),
  );
  app.get(
    "/network-volumes/:networkVolumeId",
    route({ ...one, operationId: "getNetworkVolume", summary: "Show a network volume", reply: v2.Volume }),
    async (request) => volumeView(request.caller, own(parts, request)),
  );
  app.delete(
    "/network-volumes/:networkVolumeId",
    route({ ...one, operationId: "deleteNetworkVolume", summary: "Delete a network volume and its files" }),
    async (request, reply) => {
      await deleteVolume(parts, request.caller, own(parts, request).id);
      return reply.code(204).send();
    },
  );
}

function own(parts: Parts, request: FastifyRequest): Volume {
  const volume = ownVolume(parts, request.caller, idOf(request, "networkVolumeId"));
  if (!visibleVolumes(parts, request.caller).includes(volume))
    throw new Refusal("NOT_FOUND", `There is no network volume '${volume.id}' for this key.`);
  return volume;
}

const volumeView = (caller: ApiKey, { id, name, size, dataCenterId }: Volume) =>
  volumeFor(caller, { id, name, size, dataCenter: dataCenterId, type: "STANDARD" as const });
