import { joinCommand, splitCommand, type Template } from "../../../domain/endpoints/template.js";
import { invalid, Refusal } from "../../../errors.js";
import { limits } from "../../../limits/index.js";
import { forCaller } from "../../../operations/access/visible.js";
import {
  createTemplate,
  deleteTemplate,
  ownTemplate,
  type TemplateInput,
  updateTemplate,
} from "../../../operations/templates/save-template.js";
import { type Context, entriesOf, type Fields, fromPairs, missingInput, sent, toPairs } from "./context.js";

/** A command's words; one more than allowed is enough for the rule that refuses them. */
export const wordsOf = (command: string | null) => splitCommand(command ?? "", limits.listItemsMax + 1);

export function templateView({ caller }: Pick<Context, "caller">, template: Template) {
  const { id, settings } = template;
  const { dockerStartCmd, ports, env, isMountPathGiven, isInline, ...rest } = forCaller(caller, template, settings);
  return {
    id,
    ...rest,
    dockerArgs: joinCommand(dockerStartCmd),
    ports: ports.join(","),
    portsConfig: ports.map((port) => ({ port, name: "" })),
    env: toPairs(env),
    isRunpod: false,
    startSsh: false,
    startJupyter: false,
    startScript: "",
    advancedStart: false,
  };
}

/** A template's settings from an input object, whose names and forms differ from REST's. */
export function templateInput(input: Fields): TemplateInput {
  const { dockerArgs, ports, env, startScript } = input;
  if (startScript)
    throw invalid("'startScript' is not run here: leave it empty, and write the command into 'dockerArgs'.");
  const { name, imageName, category, containerDiskInGb, volumeInGb, volumeMountPath } = input;
  const { isServerless, isPublic, readme, containerRegistryAuthId } = input;
  return sent({
    name,
    imageName,
    category,
    containerDiskInGb,
    volumeInGb,
    volumeMountPath,
    isServerless,
    isPublic,
    readme,
    containerRegistryAuthId,
    dockerStartCmd: dockerArgs === undefined ? undefined : wordsOf(dockerArgs as string | null),
    ports: ports === undefined ? undefined : (entriesOf(ports as string) ?? []),
    env: fromPairs(env as Parameters<typeof fromPairs>[0]),
  });
}

async function saveTemplate({ input }: { input?: Fields | null }, { parts, caller }: Context) {
  if (!input) throw missingInput();
  const { id } = input;
  const fields = templateInput(input);
  if (id) {
    const own = ownTemplate(parts, caller, id as string);
    return templateView({ caller }, await updateTemplate(parts, caller, own, fields));
  }
  if (!fields.name || !fields.imageName) throw invalid("'name' and 'imageName' are required to create a template.");
  return templateView({ caller }, await createTemplate(parts, caller, fields));
}

async function removeTemplate({ templateName }: { templateName?: string | null }, { parts, caller }: Context) {
  if (!templateName) throw invalid("'templateName' is required: the name of the template to delete.");
  const named = parts.registry
    .templates()
    .find(({ settings, ownerNo }) => settings.name === templateName && ownerNo === caller.ownerNo);
  if (!named) throw new Refusal("NOT_FOUND", `There is no template named '${templateName.slice(0, 80)}' for this key.`);
  await deleteTemplate(parts, caller, named);
  return null;
}

/** Another user's public templates are shown to keys that see more than chosen endpoints. */
const isPublicFor = ({ caller }: Context, { settings }: Template) =>
  settings.isPublic && caller.scope.kind !== "endpoints";

function podTemplate({ id }: { id: string }, context: Context) {
  const template = context.parts.registry.template(id);
  if (!template || !(context.seen.templates.includes(template) || isPublicFor(context, template))) return null;
  return templateView(context, template);
}

function podTemplates({ input }: { input?: { isRunpod?: boolean | null } | null }, context: Context) {
  if (input?.isRunpod) return []; // the hosted service's own
  const others = context.parts.registry
    .templates()
    .filter((template) => template.ownerNo !== context.caller.ownerNo && isPublicFor(context, template));
  return context.answer.list([...context.seen.templates, ...others], (each) => templateView(context, each));
}

export const templateResolvers = { saveTemplate, deleteTemplate: removeTemplate, podTemplate, podTemplates };
