import { topics } from "../../bell.js";
import { changed, deleted, updated } from "../../domain/access/audit.js";
import { type ApiKey, isVisible } from "../../domain/access/key.js";
import {
  type Endpoint,
  type EndpointSettings,
  needsRelease,
  recordedEndpoint,
} from "../../domain/endpoints/endpoint.js";
import type { TemplateSettings } from "../../domain/endpoints/template.js";
import { isPod } from "../../domain/pods/pod.js";
import { desiredWorkers } from "../../domain/scaling/scaling.js";
import { outdated } from "../../domain/workers/leaving.js";
import { endpointNotFound, Refusal } from "../../errors.js";
import { auditing } from "../../store/audit.js";
import type { NewRelease } from "../../store/index.js";
import { type Caller, changeAs } from "../access/change-as.js";
import { unseenEndpoint } from "../access/visible.js";
import { checkKept } from "../check-kept.js";
import { announceEnd, cancelWaiting, endpointDeleted, ringStops } from "../jobs/change-job.js";
import type { Needs } from "../needs.js";
import { checkImage } from "../templates/check-image.js";
import { dropInlineTemplates } from "../templates/template-users.js";
import { withinQuota } from "../usage/quotas.js";
import { closeWorker } from "../workers/worker-life.js";
import { type EndpointInput, mergeSettings, unknownTemplate } from "./endpoint-settings.js";
import { scaleInputs } from "./scale-inputs.js";
import { StartRoom } from "./start-room.js";

type Saving = Needs<"registry" | "here" | "clock" | "ids" | "bell" | "emit" | "tallies" | "reader">;
type Deleting = Saving & Needs<"jobs" | "purges" | "reader">;

/** The caller's endpoint. Another user's is refused exactly like an unknown one. */
export function ownEndpoint({ registry }: Needs<"registry">, caller: ApiKey, id: string): Endpoint {
  const endpoint = registry.endpoint(id);
  if (!isVisible(caller, endpoint)) throw unseenEndpoint({ registry }, caller, id);
  return endpoint;
}

export async function createEndpoint(needs: Saving, asking: Caller, input: EndpointInput): Promise<Endpoint> {
  await checkTemplate(needs, asking, input);
  return changeAs(needs, asking, (caller) => addEndpoint(needs, caller, input));
}

/** Creates an endpoint, within a change. */
export async function addEndpoint(needs: Saving, caller: ApiKey, input: EndpointInput): Promise<Endpoint> {
  const settings = mergeSettings(needs, caller, undefined, input);
  checkKept(needs, caller.ownerNo, settings);
  const has = needs.registry.endpoints().filter((each) => !isPod(each) && isOwn(each, caller)).length;
  withinQuota(needs, caller.ownerNo, "endpoints", { has });
  const template = templateOf(needs, settings);
  const id = needs.ids.resource();
  const made = { id, ownerNo: caller.ownerNo, settings, template, createdAt: needs.clock.now() };
  auditing.note(changed("endpoint.create", id, undefined, { ...settings }));
  const endpoint = await needs.registry.createEndpoint(made);
  needs.bell.ring("demand");
  return endpoint;
}

const isOwn = ({ ownerNo, deletedAt }: Endpoint, caller: ApiKey) =>
  ownerNo === caller.ownerNo && deletedAt === undefined;

/**
 * Changes only the fields sent. A change to what workers are made of makes a new version; any save ends crash-loop
 * pauses.
 */
export async function updateEndpoint(
  needs: Saving,
  asking: Caller,
  endpoint: Endpoint,
  input: EndpointInput,
): Promise<Endpoint> {
  await checkTemplate(needs, asking, input);
  return changeAs(needs, asking, async (caller) => {
    const current = ownEndpoint(needs, caller, endpoint.id);
    const settings = mergeSettings(needs, caller, current.settings, input);
    checkKept(needs, caller.ownerNo, settings, current.settings);
    auditing.note(updated("endpoint.update", current.id, recordedEndpoint(current), recordedEndpoint({ settings })));
    if (!needsRelease(current.settings, settings)) return saveAndRelease(needs, current, settings, undefined);
    // after a rollback, changes of the endpoint keep the template of that version
    const isSame = settings.templateId === current.settings.templateId;
    const present = isSame ? await needs.registry.release(current.no, current.version) : undefined;
    const template = present?.template ?? templateOf(needs, settings);
    return saveAndRelease(needs, current, settings, { template, madeAt: needs.clock.now() });
  });
}

/** Rejects an image this host cannot run before anything is saved. Ownership is checked later, with the rest. */
async function checkTemplate(needs: Saving, caller: ApiKey, { templateId }: EndpointInput): Promise<void> {
  const template = needs.registry.template(templateId ?? "");
  const isTheirs = template?.ownerNo === caller.ownerNo || template?.settings.isPublic;
  if (template && isTheirs) await checkImage(needs, template.settings);
}

/**
 * Saves. Once this resolves, workers due to be replaced get no more jobs; those still needed stay until new ones are
 * up.
 */
export async function saveAndRelease(
  needs: Needs<"registry" | "clock" | "bell" | "emit" | "tallies" | "reader" | "here">,
  endpoint: Endpoint,
  settings: EndpointSettings,
  release: NewRelease | undefined,
): Promise<Endpoint> {
  const saved = await needs.registry.saveEndpoint(endpoint, settings, release);
  const inputs = await scaleInputs(needs, saved, needs.clock.now(), new StartRoom(needs));
  const replaced = new Set(outdated(inputs, desiredWorkers(inputs).want).map(({ no }) => no));
  const why = settings.workersMax === 0 ? "workersMax is 0" : `version ${saved.version} replaces it`;
  for (const worker of needs.registry.workersOf(endpoint.no)) {
    if (settings.workersMax === 0 || replaced.has(worker.row.no)) await closeWorker(needs, worker, why);
  }
  needs.bell.ring(topics.demand(endpoint.no));
  return saved;
}

/** The template that an endpoint uses now. */
function templateOf({ registry }: Needs<"registry">, { templateId }: EndpointSettings): TemplateSettings {
  const template = registry.template(templateId);
  if (!template) throw unknownTemplate(templateId);
  return template.settings;
}

/** Deletes an endpoint (contract: only when workersMin and workersMax are 0; `/sdk` sets them first). */
export async function deleteEndpoint(
  needs: Deleting,
  asking: Caller,
  endpoint: Endpoint,
  options: { setToZero: boolean },
): Promise<void> {
  await changeAs(needs, asking, async (caller) => {
    const current = needs.registry.endpointByNo(endpoint.no);
    if (current?.ownerNo !== endpoint.ownerNo || current.deletedAt !== undefined) throw endpointNotFound(endpoint.id);
    const { workersMin, workersMax } = current.settings;
    if (!options.setToZero && (workersMin !== 0 || workersMax !== 0)) {
      throw new Refusal("IN_USE", "Set workersMin and workersMax to 0 before deleting the endpoint.");
    }
    const isOwn = current.ownerNo === caller.ownerNo;
    auditing.note(deleted("endpoint.delete", current.id, { ...current.settings }, isOwn));
    await needs.registry.removeEndpoint(current, needs.clock.now());
    await dropInlineTemplates(needs, current);
  });
  await clearEndpoint(needs, endpoint.no);
}

/** Cancels the unfinished jobs of a deleted endpoint; the scaler stops its workers. A loop finishes it if we end halfway. */
export async function clearEndpoint(needs: Deleting, endpointNo: number): Promise<void> {
  const error = endpointDeleted;
  needs.bell.ring(topics.demand(endpointNo));
  await cancelWaiting(needs, endpointNo, error);
  for (const no of (await needs.tallies.holdings(endpointNo)).keys()) {
    for (const held of await needs.reader.heldBy(no)) {
      if (held.stopWanted) continue;
      const ended = await needs.jobs.change({ job: held, change: { by: "cancel", error }, now: needs.clock.now() });
      if (ended) announceEnd(needs, endpointNo, ended);
      ringStops(needs, no);
    }
  }
  // jobs given back meanwhile are waiting again
  await cancelWaiting(needs, endpointNo, error);
}
