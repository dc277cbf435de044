import { statSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { changed, deleted, updated } from "../../domain/access/audit.js";
import type { ApiKey } from "../../domain/access/key.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { isImageReference, noReference } from "../../domain/endpoints/image-reference.js";
import { isMountPath } from "../../domain/endpoints/mount-path.js";
import {
  changesWorkers,
  isPath,
  namesHandler,
  type Template,
  type TemplateSettings,
  templateDefaults,
} from "../../domain/endpoints/template.js";
import { forbidden, invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import { type Caller, changeAs } from "../access/change-as.js";
import { visibleTemplates } from "../access/visible.js";
import { checkKept } from "../check-kept.js";
import { saveAndRelease } from "../endpoints/save-endpoint.js";
import { checkFields, choice, type FieldRules, flag, integer, list, nameRule, text, variables } from "../fields.js";
import type { Needs } from "../needs.js";
import { withinQuota } from "../usage/quotas.js";
import { checkImage } from "./check-image.js";
import { usersOf } from "./template-users.js";

/** What a caller may send of a template: absent keeps, null clears. */
export type TemplateInput = { readonly [Field in keyof TemplateSettings]?: TemplateSettings[Field] | null | undefined };

const imageCharsMax = 4_096;
/** The fields of a template that a caller may send over any interface. */
export const templateFields = {
  name: nameRule,
  imageName: text(imageCharsMax),
  category: choice(["NVIDIA", "AMD", "CPU"]),
  containerDiskInGb: integer(0, 100_000),
  containerRegistryAuthId: text(10_000),
  dockerEntrypoint: list(text(1_000, "lines")),
  dockerStartCmd: list(text(1_000, "lines")),
  env: variables,
  isPublic: flag,
  isServerless: flag,
  ports: list({ is: "port" }),
  readme: text(100_000, "lines"),
  volumeInGb: integer(0, 100_000),
  volumeMountPath: text(10_000),
} as const satisfies FieldRules;

type Saving = Needs<"registry" | "here" | "ids" | "bell" | "clock" | "emit" | "tallies" | "reader">;

export function ownTemplate({ registry }: Needs<"registry">, caller: ApiKey, id: string): Template {
  const template = registry.template(id);
  const isOwn = template?.ownerNo === caller.ownerNo;
  if (!isOwn || (caller.scope.kind === "endpoints" && !visibleTemplates({ registry }, caller).includes(template))) {
    throw templateNotFound(id);
  }
  return template;
}

const templateNotFound = (id: string): Refusal =>
  new Refusal("NOT_FOUND", `There is no template '${id.slice(0, 80)}' for this key.`);

export async function createTemplate(needs: Saving, asking: Caller, input: TemplateInput): Promise<Template> {
  await checkTemplateInput(needs, asking, undefined, input);
  return changeAs(needs, asking, (caller) => addTemplate(needs, caller, input));
}

/** Rejects a template that cannot be run here, before anything is saved. */
export async function checkTemplateInput(
  needs: Saving,
  caller: ApiKey,
  base: TemplateSettings | undefined,
  input: TemplateInput,
): Promise<void> {
  const draft = mergeTemplate(needs, caller, base, input);
  checkHandler(needs, draft);
  await checkImage(needs, draft);
}

/** Creates a template, within a change. */
export function addTemplate(needs: Saving, caller: ApiKey, input: TemplateInput): Promise<Template> {
  const settings = mergeTemplate(needs, caller, undefined, input);
  checkName(needs, caller, settings.name, undefined);
  checkKept(needs, caller.ownerNo, settings);
  const has = needs.registry.templates().filter(({ ownerNo }) => ownerNo === caller.ownerNo).length;
  withinQuota(needs, caller.ownerNo, "templates", { has });
  const id = needs.ids.resource();
  auditing.note(changed("template.create", id, undefined, { ...settings }));
  return needs.registry.createTemplate({ id, ownerNo: caller.ownerNo, settings });
}

/**
 * Changes only the fields sent. A change to what workers are made of starts a rolling release of the endpoints that use
 * it.
 */
export async function updateTemplate(
  needs: Saving,
  asking: Caller,
  template: Template,
  input: TemplateInput,
): Promise<Template> {
  if (input.imageName || input.dockerStartCmd !== undefined || input.dockerEntrypoint !== undefined) {
    await checkTemplateInput(needs, asking, template.settings, input);
  }
  const { before, saved } = await changeAs(needs, asking, async (caller) => {
    const current = ownTemplate(needs, caller, template.id);
    const settings = mergeTemplate(needs, caller, current.settings, input);
    checkName(needs, caller, settings.name, current.id);
    checkKept(needs, caller.ownerNo, settings, current.settings);
    auditing.note(updated("template.update", current.id, { ...current.settings }, { ...settings }));
    return { before: current.settings, saved: await needs.registry.saveTemplate(current, settings) };
  });
  const users = usersOf(needs, saved);
  for (let at = 0; at < users.length; at += limits.releasedAtOnce) {
    const some = users.slice(at, at + limits.releasedAtOnce);
    await changeAs(needs, asking, () => releaseTo(needs, some, before, saved));
  }
  return saved;
}

/** Saves endpoints that use a template that was changed, with a new version if the change makes other workers. */
async function releaseTo(
  needs: Saving,
  endpoints: readonly Endpoint[],
  before: TemplateSettings,
  saved: Template,
): Promise<void> {
  const settings = needs.registry.template(saved.id)?.settings;
  if (!settings) return; // deleted meanwhile
  for (const { no } of endpoints) {
    const endpoint = needs.registry.endpointByNo(no);
    if (!endpoint || endpoint.deletedAt !== undefined || endpoint.settings.templateId !== saved.id) continue;
    const present = await needs.registry.release(endpoint.no, endpoint.version);
    // Compared with the endpoint's version, so that a change sent again reaches the endpoints that it missed; after a
    // rollback with the template, so that sending it again does not undo the rollback.
    const was = present?.rollbackOf === undefined ? present?.template : before;
    const release = changesWorkers(was ?? before, settings)
      ? { template: settings, madeAt: needs.clock.now() }
      : undefined;
    await saveAndRelease(needs, endpoint, endpoint.settings, release);
  }
}

/** Deletes a template that no endpoint uses. A public one may be in use by endpoints that its owner does not see. */
export function deleteTemplate(needs: Saving, asking: Caller, template: Template): Promise<void> {
  return changeAs(needs, asking, async (caller) => {
    if (needs.registry.template(template.id)?.ownerNo !== template.ownerNo) throw templateNotFound(template.id);
    const users = usersOf(needs, template);
    const own = users.find(({ ownerNo }) => ownerNo === template.ownerNo);
    if (own) {
      throw new Refusal(
        "IN_USE",
        `The endpoint '${own.id}' uses this template; delete it or give it another one first.`,
      );
    }
    if (users.length > 0) throw new Refusal("IN_USE", "Another user's endpoint uses this public template.");
    const isOwn = template.ownerNo === caller.ownerNo;
    auditing.note(deleted("template.delete", template.id, { ...template.settings }, isOwn));
    await needs.registry.removeTemplate(template);
  });
}

function checkName({ registry }: Saving, caller: ApiKey, name: string, ownId: string | undefined): void {
  const same = registry.templates().find((other) => other.ownerNo === caller.ownerNo && other.settings.name === name);
  if (same && same.id !== ownId)
    throw new Refusal("IN_USE", `Another template of yours is named '${name}'; choose another name.`);
}

const nothing: TemplateSettings = { ...templateDefaults, name: "", imageName: "" };

/** The settings that result from applying `input` to `base` (or to the defaults), checked. */
export function mergeTemplate(
  needs: Saving,
  caller: ApiKey,
  base: TemplateSettings = nothing,
  input: TemplateInput,
): TemplateSettings {
  checkFields(templateFields, input, base as unknown as Readonly<Record<string, unknown>>);
  const draft: Record<string, unknown> = { ...base };
  for (const [field, value] of Object.entries(input)) {
    if (field === "category" && value === "") continue;
    if (value === null) draft[field] = templateDefaults[field as keyof typeof templateDefaults];
    else if (value !== undefined) draft[field] = value;
    if (draft[field] === undefined || (field === "containerRegistryAuthId" && draft[field] === "")) delete draft[field];
  }
  const path = input.volumeMountPath;
  if (path && path !== base.volumeMountPath && !isMountPath(path)) throw noMountPath(path);
  // a client that sends back the path it was shown has not chosen one
  if (path && (path !== base.volumeMountPath || base.name === "")) draft.isMountPathGiven = true;
  if (path === null || path === "") delete draft.isMountPathGiven;
  const settings = draft as unknown as TemplateSettings;
  for (const field of ["name", "imageName"] as const) {
    if (!settings[field]) throw invalid(`A template needs '${field}'.`);
  }
  const authId = input.containerRegistryAuthId;
  if (authId && needs.registry.registryAuth(authId)?.ownerNo !== caller.ownerNo) {
    throw invalid(
      `There is no container registry auth '${authId.slice(0, 80)}' for this key (containerRegistryAuthId).`,
    );
  }
  if (namesHandler(settings.imageName)) throw handlerNamed(settings.imageName);
  if (isPath(settings.imageName)) return { ...settings, imageName: directory(needs, caller, settings.imageName) };
  if (!isImageReference(settings.imageName)) throw invalid(`${noReference(settings.imageName)} (imageName).`);
  return settings;
}

const noMountPath = (path: string) =>
  invalid(
    `${JSON.stringify(path.slice(0, 80))} in volumeMountPath cannot hold a volume: write an absolute path outside /proc, /sys and /dev, such as /data.`,
  );

/** Refuses a directory without a handler if no command is given either. */
function checkHandler({ here }: Saving, { imageName, dockerStartCmd }: TemplateSettings): void {
  if (!isPath(imageName) || dockerStartCmd.length > 0 || here.hasHandler?.(imageName) !== false) return;
  throw invalid(
    `There is no handler.ts, handler.js, handler.mjs or handler.py in '${imageName.slice(0, 200)}' (imageName): put one there, or say in dockerStartCmd how its workers start.`,
  );
}

const handlerNamed = (image: string) =>
  invalid(
    `'${image.slice(0, 200)}' in imageName is a handler's file: name the directory that holds it, as in ./examples/hello.`,
  );

/** The absolute path of a handler's directory; relative ones start from the server's working directory. */
function directory({ here, registry }: Saving, caller: ApiKey, image: string): string {
  if (!here.localProcesses)
    throw invalid("Directories as images are turned off here (MILLRACE_LOCAL_PROCESSES); use a container image.");
  if (!registry.isFirstAdmin(caller.ownerNo))
    throw forbidden(
      "Only the first admin may use a directory as an image: it runs with the server's rights. Name a container image.",
    );
  const path = image.startsWith("file:")
    ? fromFileUrl(image, here.workingDir)
    : resolve(here.workingDir, image.replace(/^~(?=\/)/, homedir()));
  checkFields({ imageName: text(imageCharsMax, "none") }, { imageName: path });
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw invalid(
      `'${image.slice(0, 200)}' in imageName is not a directory on this machine: name the one that holds the handler.`,
    );
  }
  return path;
}

function fromFileUrl(image: string, workingDir: string): string {
  if (!image.startsWith("file://")) return resolve(workingDir, image.slice("file:".length));
  if (!URL.canParse(image) || new URL(image).host !== "") throw invalid("imageName is not a file URL of this machine.");
  return fileURLToPath(image);
}
