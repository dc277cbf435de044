import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { joinCommand, splitCommand, type Template } from "../../domain/endpoints/template.js";
import { showGpuTypes } from "../../domain/hosts/gpu.js";
import { invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import type { Caller } from "../../operations/access/change-as.js";
import {
  createSecret,
  deleteSecret,
  type SecretInput,
  secretsOf,
  showSecret,
} from "../../operations/access/save-secret.js";
import {
  forCaller,
  visibleEndpoints,
  visibleRegistryAuths,
  visibleTemplates,
  visibleVolumes,
  volumeFor,
} from "../../operations/access/visible.js";
import type { EndpointInput } from "../../operations/endpoints/endpoint-settings.js";
import {
  createEndpoint,
  deleteEndpoint,
  ownEndpoint,
  updateEndpoint,
} from "../../operations/endpoints/save-endpoint.js";
import { liveHosts } from "../../operations/jobs/read-job.js";
import type { Parts } from "../../operations/needs.js";
import { showEndpoint, showRegistryAuth, showVolume } from "../../operations/show-resources.js";
import {
  createRegistryAuth,
  deleteRegistryAuth,
  ownRegistryAuth,
  updateRegistryAuth,
} from "../../operations/templates/save-registry-auth.js";
import {
  createTemplate,
  deleteTemplate,
  ownTemplate,
  type TemplateInput,
  updateTemplate,
} from "../../operations/templates/save-template.js";
import { showWorkers } from "../../operations/workers/show-workers.js";
import type { Answer } from "./answer.js";

/** What resolvers receive besides their arguments. */
export interface Context {
  readonly parts: Parts & { readonly setToZero: boolean };
  readonly caller: Caller;
  readonly answer: Answer;
}

interface Pair {
  readonly key: string;
  readonly value: string;
}
type Fields = Record<string, unknown>;

const fromPairs = (pairs: readonly Pair[] | null | undefined) =>
  pairs && Object.fromEntries(pairs.map(({ key, value }) => [key, value]));
/** A command's words; one more than allowed is enough for the rule that refuses them. */
const wordsOf = (command: string | null) => splitCommand(command ?? "", limits.listItemsMax + 1);
/** An environment as a list, made only if the query asks for it: it may be as long as any list. */
const toPairs =
  (env: Readonly<Record<string, string>>) =>
  (_: unknown, { answer }: Context) =>
    answer.pairs(env);
const list = (text: string | null | undefined) =>
  text
    ?.split(",")
    .map((part) => part.trim())
    .filter(Boolean);

function templateView({ caller }: Pick<Context, "caller">, template: Template) {
  const { dockerStartCmd, ports, env, isMountPathGiven, ...rest } = forCaller(caller, template, template.settings);
  const { id } = template;
  return { id, ...rest, dockerArgs: joinCommand(dockerStartCmd), ports: ports.join(","), env: toPairs(env) };
}

function endpointView(context: Context, endpoint: Endpoint) {
  const { parts, caller } = context;
  const { env, allowedCudaVersions, ...rest } = forCaller(caller, endpoint, showEndpoint(parts, endpoint));
  const template = parts.registry.template(endpoint.settings.templateId);
  const volume = parts.registry.volume(endpoint.settings.networkVolumeIds[0] ?? "");
  return {
    ...rest,
    env: toPairs(env),
    allowedCudaVersions: allowedCudaVersions?.join(",") ?? null,
    workersStandby: 0,
    template: template && templateView(context, template),
    networkVolume: volume && volumeFor(caller, showVolume(parts, volume)),
    pods: async (_: unknown, { answer }: Context) => answer.list(await showWorkers(parts, endpoint), (pod) => pod),
  };
}

/** Empty strings mean none; on modify they clear `locations` and `networkVolumeId`, and leave the rest as it is. */
function endpointInput(input: Fields): EndpointInput {
  const { id, env, allowedCudaVersions, ...rest } = input;
  return {
    ...(rest as EndpointInput),
    ...(env === undefined ? {} : { env: fromPairs(env as Pair[]) }),
    ...(allowedCudaVersions === undefined ? {} : { allowedCudaVersions: list(allowedCudaVersions as string) }),
  };
}

async function saveEndpoint({ input }: { input: Fields }, context: Context) {
  const { parts, caller } = context;
  if (input.id) {
    const endpoint = ownEndpoint(parts, caller, input.id as string);
    return endpointView(context, await updateEndpoint(parts, caller, endpoint, endpointInput(input)));
  }
  for (const name of ["name", "templateId", "gpuIds"])
    if (!input[name]) throw invalid(`'${name}' is required to create an endpoint.`);
  return endpointView(context, await createEndpoint(parts, caller, endpointInput(input)));
}

async function removeEndpoint({ id }: { id: string }, { parts, caller }: Context) {
  await deleteEndpoint(parts, caller, ownEndpoint(parts, caller, id), parts);
  return null;
}

async function saveTemplate({ input }: { input: Fields }, { parts, caller }: Context) {
  const { id, dockerArgs, ports, env, startSsh, startJupyter, ...rest } = input;
  const fields: TemplateInput = {
    ...(rest as TemplateInput),
    ...(dockerArgs === undefined ? {} : { dockerStartCmd: wordsOf(dockerArgs as string | null) }),
    ...(ports === undefined ? {} : { ports: list(ports as string) ?? [] }),
    ...(env === undefined ? {} : { env: fromPairs(env as Pair[]) }),
  };
  if (id)
    return templateView(
      { caller },
      await updateTemplate(parts, caller, ownTemplate(parts, caller, id as string), fields),
    );
  if (!fields.name || !fields.imageName) throw invalid("'name' and 'imageName' are required to create a template.");
  return templateView({ caller }, await createTemplate(parts, caller, fields));
}

async function removeTemplate({ templateName }: { templateName: string }, { parts, caller }: Context) {
  const named = parts.registry
    .templates()
    .find(({ settings, ownerNo }) => settings.name === templateName && ownerNo === caller.ownerNo);
  if (!named)
    throw new Refusal("NOT_FOUND", `There is no template named '${String(templateName).slice(0, 80)}' for this key.`);
  await deleteTemplate(parts, caller, named);
  return null;
}

async function updateEndpointTemplate(
  { input }: { input: { endpointId: string; templateId: string } },
  context: Context,
) {
  const { parts, caller } = context;
  const endpoint = ownEndpoint(parts, caller, input.endpointId);
  return endpointView(context, await updateEndpoint(parts, caller, endpoint, { templateId: input.templateId }));
}

const saveRegistryAuth = async (
  { input }: { input: { name: string; username: string; password: string } },
  { parts, caller }: Context,
) => showRegistryAuth(await createRegistryAuth(parts, caller, input));

async function changeRegistryAuth(
  { input: { id, ...given } }: { input: { id: string; username: string; password: string } },
  { parts, caller }: Context,
) {
  return showRegistryAuth(await updateRegistryAuth(parts, caller, ownRegistryAuth(parts, caller, id), given));
}

async function removeRegistryAuth({ registryAuthId }: { registryAuthId: string }, { parts, caller }: Context) {
  await deleteRegistryAuth(parts, caller, ownRegistryAuth(parts, caller, registryAuthId));
  return true;
}

const createOwnSecret = async ({ input }: { input: SecretInput }, { parts, caller }: Context) =>
  showSecret(await createSecret(parts, caller, input));

async function removeSecret({ id }: { id: string }, { parts, caller }: Context) {
  await deleteSecret(parts, caller, id);
  return true;
}

function myself(_: unknown, context: Context) {
  const { registry } = context.parts;
  return {
    id: registry.user(context.caller.ownerNo)?.id,
    endpoints: () => {
      const visible = visibleEndpoints(context.parts, context.caller);
      return context.answer.list(visible, (endpoint) => endpointView(context, endpoint));
    },
    networkVolumes: () =>
      context.answer.list(visibleVolumes(context.parts, context.caller), (volume) =>
        volumeFor(context.caller, showVolume(context.parts, volume)),
      ),
    podTemplates: () =>
      context.answer.list(visibleTemplates(context.parts, context.caller), (each) => templateView(context, each)),
    containerRegistryCreds: () =>
      context.answer.list(visibleRegistryAuths(context.parts, context.caller), showRegistryAuth),
    secrets: async () => context.answer.list(await secretsOf(context.parts, context.caller), showSecret),
    serverlessDiscount: null,
  };
}

function gpuTypes({ input }: { input?: { id?: string | null } | null }, { parts }: Context) {
  const types = showGpuTypes(liveHosts(parts));
  const id = input?.id;
  return id ? types.filter((type) => type.id === id) : types;
}

/** One function per field of Query and Mutation, each around one operation. */
export const resolvers = {
  myself,
  gpuTypes,
  saveEndpoint,
  deleteEndpoint: removeEndpoint,
  saveTemplate,
  deleteTemplate: removeTemplate,
  updateEndpointTemplate,
  saveRegistryAuth,
  updateRegistryAuth: changeRegistryAuth,
  deleteRegistryAuth: removeRegistryAuth,
  secretCreate: createOwnSecret,
  secretDelete: removeSecret,
};
