import { existsSync } from "node:fs";
import { join } from "node:path";
import { changed, deleted, updated } from "../../domain/access/audit.js";
import type { ApiKey } from "../../domain/access/key.js";
import { type Endpoint, servingVersion } from "../../domain/endpoints/endpoint.js";
import type { Volume } from "../../domain/endpoints/volume.js";
import { isPod } from "../../domain/pods/pod.js";
import { volumeGbMs } from "../../domain/usage/meter.js";
import { isThrottled } from "../../domain/workers/worker.js";
import { invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import { turns } from "../../turns.js";
import { type Caller, changeAs } from "../access/change-as.js";
import { visibleVolumes } from "../access/visible.js";
import { checkFields, integer, nameRule, text } from "../fields.js";
import type { Needs } from "../needs.js";
import { keptGb, withinQuota } from "../usage/quotas.js";
import { boundVolume, keepVolume } from "./keep-volume.js";

type Saving = Needs<"registry" | "here" | "ids" | "emit" | "clock">;

/** The fields of a volume that a caller may send over any interface. */
export const volumeFields = { name: nameRule, size: integer(0, 4_000), dataCenterId: text(100, "none") };

export function ownVolume({ registry }: Needs<"registry">, caller: ApiKey, id: string): Volume {
  const volume = registry.volume(id);
  const isOwn = volume?.ownerNo === caller.ownerNo;
  if (!isOwn || (caller.scope.kind === "endpoints" && !visibleVolumes({ registry }, caller).includes(volume))) {
    throw new Refusal("NOT_FOUND", `There is no network volume '${id.slice(0, 80)}' for this key.`);
  }
  return volume;
}

/** Makes a volume: a directory under the data directory. */
export async function createVolume(
  needs: Saving,
  asking: Caller,
  input: Pick<Volume, "name" | "size" | "dataCenterId">,
): Promise<Volume> {
  checkFields(volumeFields, input);
  const id = needs.ids.resource();
  const { name, size, dataCenterId } = input;
  hasRoom(needs, asking, size);
  await keepVolume(needs, { id, size });
  return changeAs(needs, asking, async ({ ownerNo }) => {
    withinQuota(needs, ownerNo, "volumesGb", { has: keptGb(needs, ownerNo), more: size });
    auditing.note(changed("volume.create", id, undefined, { name, size, dataCenterId }));
    return needs.registry.createVolume({ id, ownerNo, name, size, dataCenterId, sizedAt: needs.clock.now(), gbMs: 0 });
  });
}

/** What the audit log leaves out: how its use is counted. */
const uncounted = { sizedAt: 0, gbMs: 0 };

/** Refuses a volume before its directory is made. */
function hasRoom(needs: Saving, { ownerNo }: Caller, size: number): void {
  const { registry } = needs;
  withinQuota(needs, ownerNo, "volumesGb", { has: keptGb(needs, ownerNo), more: size });
  if (registry.volumes().filter((volume) => volume.ownerNo === ownerNo).length < limits.volumesPerUserMax) return;
  throw new Refusal("IN_USE", `A user may have ${limits.volumesPerUserMax} network volumes: delete one first.`);
}

export async function updateVolume(
  needs: Saving,
  asking: Caller,
  volume: Volume,
  input: { name?: string; size?: number },
): Promise<Volume> {
  checkFields(volumeFields, input);
  const saved = await changeAs(needs, asking, async () => {
    const current = needs.registry.volume(volume.id);
    if (!current) throw invalid(`There is no network volume '${volume.id}' any more.`);
    if (input.size !== undefined && input.size < current.size) {
      throw invalid(`A volume can only grow: its size is ${current.size} GB.`);
    }
    const more = (input.size ?? current.size) - current.size;
    withinQuota(needs, current.ownerNo, "volumesGb", { has: keptGb(needs, current.ownerNo), more });
    const now = needs.clock.now();
    const used = input.size === undefined ? {} : { sizedAt: now, gbMs: volumeGbMs(current, now) };
    const next = { ...current, ...input, ...used };
    auditing.note(updated("volume.update", current.id, { ...current, ...uncounted }, { ...next, ...uncounted }));
    return needs.registry.saveVolume(next);
  });
  if (existsSync(join(needs.here.volumes.dir, saved.id))) await boundVolume(needs, saved);
  return saved;
}

/**
 * Deletes a volume and its files. Unknown, malformed or still attached is 400 (contract: Network volume). `ownerNo`:
 * the owner that it must have.
 */
export async function deleteVolume(
  needs: Saving,
  asking: Caller,
  id: string,
  ownerNo: number = asking.ownerNo,
): Promise<void> {
  await changeAs(needs, asking, async (caller) => {
    const volume = needs.registry.volume(id);
    // 400, by the contract (Errors)
    if (volume?.ownerNo !== ownerNo) throw invalid(`There is no network volume '${id.slice(0, 80)}'.`);
    for (const endpoint of needs.registry.endpoints()) {
      if (turns.isOver) await turns.take(["changes"]); // versions hold whole environments
      const use = await useOf(needs, endpoint, id);
      if (use !== undefined) throw new Refusal("IN_USE", use);
    }
    const { name, size, dataCenterId } = volume;
    auditing.note(deleted("volume.delete", id, { name, size, dataCenterId }, ownerNo === caller.ownerNo));
    const endedAt = needs.clock.now();
    await needs.registry.removeVolume(volume, { gbMs: volumeGbMs(volume, endedAt), endedAt });
  });
  const { dir, quota, bounds, held, inClusters } = needs.here.volumes;
  bounds.delete(id);
  await quota.remove(join(dir, id)).catch((error) => {
    const message = `the files of network volume ${id} could not all be removed; remove them by hand`;
    needs.emit({ type: "server.warning", message, error });
  });
  for (const kept of [held, ...inClusters])
    await kept?.remove(id).catch((error) => {
      const message = `${kept.nameOf(id)}, which stands for a deleted network volume, could not be removed; remove it by hand`;
      needs.emit({ type: "server.warning", message, error });
    });
}

/**
 * How an endpoint uses a volume, as a sentence: in its settings, in the version that serves, or through a worker that
 * still runs. Undefined if it does not.
 */
async function useOf({ registry }: Saving, endpoint: Endpoint, id: string): Promise<string | undefined> {
  const { no, settings } = endpoint;
  const isDeleted = endpoint.deletedAt !== undefined;
  if (!isDeleted && settings.networkVolumeIds.includes(id))
    return isPod(endpoint)
      ? `The pod '${endpoint.id}' uses this volume; delete the pod first.`
      : `The endpoint '${endpoint.id}' uses this volume; detach it first.`;
  const has = async (version: number) =>
    (await registry.release(no, version))?.settings.networkVolumeIds.includes(id) ?? false;
  const serving = servingVersion(endpoint);
  if (!isDeleted && (await has(serving)))
    return `Version ${serving} of the endpoint '${endpoint.id}', which serves, uses this volume.`;
  for (const { row } of registry.workersOf(no)) {
    if (isThrottled(row) || !(await has(row.version))) continue;
    return `The worker '${row.id}' of the endpoint '${endpoint.id}' still uses this volume; try again when it has ended.`;
  }
  return undefined;
}
