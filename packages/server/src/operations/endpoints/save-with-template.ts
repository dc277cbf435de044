import { changed } from "../../domain/access/audit.js";
import type { ApiKey } from "../../domain/access/key.js";
import { type Endpoint, needsRelease } from "../../domain/endpoints/endpoint.js";
import { changesWorkers, type Template } from "../../domain/endpoints/template.js";
import { invalid } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import { type Caller, changeAs } from "../access/change-as.js";
import { checkKept } from "../check-kept.js";
import type { Needs } from "../needs.js";
import { addTemplate, checkTemplateInput, mergeTemplate, type TemplateInput } from "../templates/save-template.js";
import { dropInlineTemplate, usersOf } from "../templates/template-users.js";
import { type EndpointInput, mergeSettings } from "./endpoint-settings.js";
import { addEndpoint, ownEndpoint, saveAndRelease, updateEndpoint } from "./save-endpoint.js";

type Saving = Needs<"registry" | "here" | "clock" | "ids" | "bell" | "emit" | "tallies">;

/** An endpoint and what its workers are made of, sent together. */
export interface Together {
  readonly endpoint: EndpointInput;
  readonly template: TemplateInput;
}

/** Creates an endpoint with a template of its own, which is deleted with it. */
export async function createWithTemplate(needs: Saving, asking: Caller, given: Together): Promise<Endpoint> {
  const template = named(needs, given.template, given.endpoint.name);
  await checkTemplateInput(needs, asking, undefined, template);
  return changeAs(needs, asking, async (caller) => {
    const own = await addTemplate(needs, caller, template);
    try {
      return await addEndpoint(needs, caller, { ...given.endpoint, templateId: own.id });
    } catch (error) {
      await dropInlineTemplate(needs, own.id);
      throw error;
    }
  });
}

/**
 * Changes an endpoint and what its workers are made of, in one version. A template that other endpoints may use is not
 * changed: the endpoint gets a copy of it.
 */
export async function updateWithTemplate(
  needs: Saving,
  asking: Caller,
  endpoint: Endpoint,
  given: Together,
): Promise<Endpoint> {
  if (Object.values(given.template).every((value) => value === undefined))
    return updateEndpoint(needs, asking, endpoint, given.endpoint);
  const { settings: before } = templateOf(needs, asking, endpoint);
  await checkTemplateInput(needs, asking, before, given.template);
  return changeAs(needs, asking, async (caller) => {
    const current = ownEndpoint(needs, caller, endpoint.id);
    const template = templateOf(needs, caller, current);
    const merged = mergeTemplate(needs, caller, template.settings, given.template);
    const settings = mergeSettings(needs, caller, current.settings, given.endpoint);
    checkKept(needs, caller.ownerNo, settings, current.settings);
    const saved = await saveTemplate(needs, caller, template, merged, settings.name);
    const now = { ...settings, templateId: saved.id };
    auditing.note(changed("endpoint.update", current.id, { ...current.settings }, { ...now }));
    const isNew = needsRelease(current.settings, now) || changesWorkers(template.settings, merged);
    const release = isNew ? { template: saved.settings, madeAt: needs.clock.now() } : undefined;
    return saveAndRelease(needs, current, now, release);
  });
}

/** Saves an endpoint's own template in its place, or a copy of one that is not its own. */
async function saveTemplate(
  needs: Saving,
  caller: ApiKey,
  template: Template,
  settings: Template["settings"],
  endpointName: string,
): Promise<Template> {
  const isOwn = template.settings.isInline && usersOf(needs, template).length === 1;
  if (!isOwn)
    return addTemplate(needs, caller, named(needs, { ...settings, name: undefined, isPublic: false }, endpointName));
  checkKept(needs, caller.ownerNo, settings, template.settings);
  auditing.note(changed("template.update", template.id, { ...template.settings }, { ...settings }));
  return needs.registry.saveTemplate(template, settings);
}

function templateOf({ registry }: Needs<"registry">, caller: ApiKey, { settings }: Endpoint): Template {
  const template = registry.template(settings.templateId);
  if (template?.ownerNo === caller.ownerNo) return template;
  throw invalid("This endpoint uses another user's template: give it one of your own before you change its image.");
}

/** An inline template: if it has no name of its own, it gets one that no other template has. */
const named = ({ ids }: Needs<"ids">, input: TemplateInput, endpointName: unknown): TemplateInput => ({
  ...input,
  name: input.name || `${String(endpointName ?? "").slice(0, limits.inlineNameChars)}-${ids.resource()}`,
  isServerless: true,
  isInline: true,
});
