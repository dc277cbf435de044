import { updated } from "../../domain/access/audit.js";
import type { ApiKey } from "../../domain/access/key.js";
import { type Endpoint, needsRelease, recordedEndpoint } from "../../domain/endpoints/endpoint.js";
import { changesWorkers, type Template } from "../../domain/endpoints/template.js";
import { invalid } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import { type Caller, changeAs } from "../access/change-as.js";
import { checkKept } from "../check-kept.js";
import type { Needs } from "../needs.js";
import { addTemplate, checkTemplateInput, mergeTemplate, type TemplateInput } from "../templates/save-template.js";
import { dropInlineTemplate, usersOf } from "../templates/template-users.js";
import { type EndpointInput, mergeSettings, templateFor } from "./endpoint-settings.js";
import { addEndpoint, createEndpoint, ownEndpoint, saveAndRelease, updateEndpoint } from "./save-endpoint.js";

type Saving = Needs<"registry" | "here" | "clock" | "ids" | "bell" | "emit" | "tallies" | "reader">;

/** An endpoint and what its workers are made of, sent together. */
export interface Together {
  readonly endpoint: EndpointInput;
  readonly template: TemplateInput;
}

/**
 * Creates an endpoint with a template of its own, which is deleted with it. If the endpoint names a template, its own is a
 * copy of that one with what was sent beside it, or that template itself if nothing was.
 */
export async function createWithTemplate(needs: Saving, asking: Caller, given: Together): Promise<Endpoint> {
  const { templateId } = given.endpoint;
  if (templateId && isEmpty(given.template)) return createEndpoint(needs, asking, given.endpoint);
  const sent = (caller: ApiKey) => {
    const base = templateId ? copyOf(templateFor(needs, caller, templateId), caller).settings : {};
    return named(needs, { ...base, name: undefined, isPublic: false, ...given.template }, given.endpoint.name);
  };
  await checkTemplateInput(needs, asking, undefined, sent(asking));
  return changeAs(needs, asking, async (caller) => {
    const own = await addTemplate(needs, caller, sent(caller));
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
  if (isEmpty(given.template)) return updateEndpoint(needs, asking, endpoint, given.endpoint);
  const { templateId } = given.endpoint;
  /** What is changed: a copy of the template that the request names, or the present one. */
  const baseOf = (caller: ApiKey, current: Endpoint): Template =>
    templateId ? copyOf(templateFor(needs, caller, templateId), caller) : templateOf(needs, caller, current);
  await checkTemplateInput(needs, asking, baseOf(asking, endpoint).settings, given.template);
  return changeAs(needs, asking, async (caller) => {
    const current = ownEndpoint(needs, caller, endpoint.id);
    const template = baseOf(caller, current);
    const merged = mergeTemplate(needs, caller, template.settings, given.template);
    const settings = mergeSettings(needs, caller, current.settings, given.endpoint);
    checkKept(needs, caller.ownerNo, settings, current.settings);
    const isOwn = template.id === current.settings.templateId && usersOf(needs, template).length === 1;
    const saved = await saveTemplate(needs, caller, { template, settings: merged, isOwn, endpointName: settings.name });
    const now = { ...settings, templateId: saved.id };
    auditing.note(
      updated("endpoint.update", current.id, recordedEndpoint(current), recordedEndpoint({ settings: now })),
    );
    const isNew = needsRelease(current.settings, now) || changesWorkers(template.settings, merged);
    const release = isNew ? { template: saved.settings, madeAt: needs.clock.now() } : undefined;
    return saveAndRelease(needs, current, now, release);
  });
}

const isEmpty = (input: TemplateInput) => Object.values(input).every((value) => value === undefined);

/** What a caller may take over of a template. The values of another user's environment are not shown to anyone. */
const copyOf = (template: Template, caller: ApiKey): Template => ({
  ...template,
  settings: { ...template.settings, env: template.ownerNo === caller.ownerNo ? template.settings.env : {} },
});

interface TemplateChange {
  readonly template: Template;
  readonly settings: Template["settings"];
  /** Whether this endpoint alone uses the template. */
  readonly isOwn: boolean;
  readonly endpointName: string;
}

/** Saves an endpoint's own template in its place, or a copy of one that is not its own. */
async function saveTemplate(needs: Saving, caller: ApiKey, change: TemplateChange): Promise<Template> {
  const { template, settings, isOwn, endpointName } = change;
  if (!isOwn || !template.settings.isInline)
    return addTemplate(needs, caller, named(needs, { ...settings, name: undefined, isPublic: false }, endpointName));
  checkKept(needs, caller.ownerNo, settings, template.settings);
  auditing.note(updated("template.update", template.id, { ...template.settings }, { ...settings }));
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
