import type { ApiKey } from "../../domain/access/key.js";
import { type EndpointSettings, endpointDefaults, type FlashBootType } from "../../domain/endpoints/endpoint.js";
import { isPath } from "../../domain/endpoints/template.js";
import { cpuFlavors } from "../../domain/hosts/cpu.js";
import { isGpuType, tiersOfTypes, typesOfTiers } from "../../domain/hosts/gpu.js";
import type { HostFacts } from "../../domain/hosts/host.js";
import { type WantedPlace, wantedCluster } from "../../domain/hosts/place.js";
import { invalid } from "../../errors.js";
import { countries, cudaVersions, dataCenters, limits } from "../../limits/index.js";
import { checkFields, choice, type FieldRules, flag, integer, list, nameRule, text, variables } from "../fields.js";
import type { Needs } from "../needs.js";

/** What a caller may send for an endpoint, over REST or GraphQL: an absent field keeps its value, null clears it. */
export type EndpointInput = {
  readonly [Field in keyof EndpointSettings]?: EndpointSettings[Field] | null | undefined;
} & {
  readonly flashboot?: boolean | null | undefined;
  readonly gpuIds?: string | null | undefined;
  readonly networkVolumeId?: string | null | undefined;
};

type Checking = Needs<"registry" | "here">;
type Draft = { -readonly [Field in keyof EndpointSettings]: EndpointSettings[Field] };

const plain = [
  "name",
  "computeType",
  "allowedCudaVersions",
  "cpuFlavorIds",
  "dataCenterIds",
  "env",
  "gpuCount",
  "idleTimeout",
  "instanceIds",
  "minCudaVersion",
  "place",
  "podClass",
  "scalerType",
  "scalerValue",
  "vcpuCount",
  "workersMax",
  "workersMin",
] as const satisfies readonly (keyof EndpointSettings)[];

/** What endpoints and pods alike say of the machine they want. */
export const machineFields = {
  computeType: choice(["GPU", "CPU"]),
  gpuTypeIds: list(text(1_000)),
  gpuCount: integer(1, 64),
  allowedCudaVersions: list(choice(cudaVersions)),
  cpuFlavorIds: list(choice(cpuFlavors.map(({ id }) => id))),
  instanceIds: list({ is: "instance" }),
  vcpuCount: integer(1, 1_024),
  dataCenterIds: list(choice(dataCenters)),
  networkVolumeId: text(10_000),
} as const satisfies FieldRules;

/** The fields of an endpoint that a caller may send over any interface. */
export const endpointFields = {
  ...machineFields,
  name: nameRule,
  templateId: text(10_000),
  type: choice(["QB", "LB"]),
  env: variables,
  executionTimeoutMs: {
    is: "integer",
    from: limits.executionTimeoutMsMin,
    to: limits.executionTimeoutMsMax,
    zero: "the default",
  },
  flashboot: flag,
  flashBootType: choice(["OFF", "FLASHBOOT", "PRIORITY_FLASHBOOT"]),
  gpuIds: text(10_000),
  idleTimeout: integer(1, 3_600),
  locations: text(10_000),
  minCudaVersion: choice(cudaVersions),
  networkVolumeIds: list(text(1_000)),
  place: text(limits.placeCharsMax),
  podClass: text(limits.podClassCharsMax, "none"),
  scalerType: choice(["QUEUE_DELAY", "REQUEST_COUNT"]),
  scalerValue: integer(1, 1_000_000),
  workersMax: integer(0, 10_000),
  workersMin: integer(0, 10_000),
} as const satisfies FieldRules;

/** The settings that result from applying `input` to `base` (or to the defaults), checked. */
export function mergeSettings(
  needs: Checking,
  caller: ApiKey,
  base: EndpointSettings | undefined,
  input: EndpointInput,
): EndpointSettings {
  checkFields(endpointFields, input, base as Readonly<Record<string, unknown>> | undefined);
  const template = templateFor(needs, caller, input.templateId ?? base?.templateId ?? "");
  const draft: Draft = { ...endpointDefaults, name: template.settings.name, templateId: template.id, ...base };
  draft.templateId = template.id;
  checkPlace(needs, input.place, base?.place);
  checkPodClass(needs, input.podClass, base?.podClass);
  for (const field of plain) assign(draft, field, input[field]);
  if (input.type && base === undefined) draft.type = input.type;
  if (input.executionTimeoutMs !== undefined)
    draft.executionTimeoutMs = input.executionTimeoutMs || endpointDefaults.executionTimeoutMs;
  draft.flashBootType = flashBoot(input, draft.flashBootType);
  draft.gpuTypeIds = gpuTypes(needs, input, draft.gpuTypeIds, base !== undefined);
  draft.locations = input.locations === undefined ? draft.locations : locations(input.locations ?? "");
  draft.networkVolumeIds = volumes(needs, caller, input, draft.networkVolumeIds);
  if (draft.workersMin > draft.workersMax) {
    throw invalid(`workersMin (${draft.workersMin}) is above workersMax (${draft.workersMax}); send both.`);
  }
  return draft;
}

function assign<Field extends (typeof plain)[number]>(
  draft: Draft,
  field: Field,
  value: Draft[Field] | null | undefined,
): void {
  if (value === undefined) return;
  if (value !== null && value !== "") draft[field] = value;
  else if (value === null && field in endpointDefaults)
    draft[field] = endpointDefaults[field as keyof typeof endpointDefaults] as Draft[Field];
  else if (value === null && field !== "name") delete draft[field];
}

/** What all hosts have, those of other servers included. */
const factsOfHosts = ({ here, registry }: Checking): HostFacts[] => [
  ...here.hosts().map(({ facts }) => facts),
  ...registry.hosts,
];

/** The clusters that are reached from here, or from other servers. */
const clustersOf = (needs: Checking): { readonly name: string; readonly podClasses?: readonly string[] }[] => [
  ...needs.here.clusters,
  ...factsOfHosts(needs).flatMap(({ cluster }) => cluster ?? []),
];

/** Refuses a class of pods that no cluster has. */
function checkPodClass(needs: Checking, podClass: string | null | undefined, before: string | undefined): void {
  if (!podClass || podClass === before) return;
  const classes = [...new Set(clustersOf(needs).flatMap(({ podClasses = [] }) => podClasses))];
  if (classes.includes(podClass)) return;
  const known =
    classes.length > 0
      ? `The pod classes are ${classes.join(", ")}.`
      : "The operator adds pod classes with MILLRACE_KUBERNETES_POD.";
  throw invalid(`No cluster here has the pod class '${podClass}'. ${known}`);
}

/** Refuses a place that is none, and a cluster that is not there. */
function checkPlace(needs: Checking, place: WantedPlace | null | undefined, before: WantedPlace | undefined): void {
  if (!place || place === "machines" || place === before) return;
  const wanted = wantedCluster(place);
  if (place !== "cluster" && !wanted)
    throw invalid("'place' must be machines, cluster, or cluster/ with a cluster's name.");
  const names = [...new Set(clustersOf(needs).map(({ name }) => name))];
  if (names.length === 0)
    throw invalid(`'place' is ${place}, and no cluster runs workers here; MILLRACE_KUBERNETES adds one.`);
  if (wanted !== undefined && !names.includes(wanted))
    throw invalid(`'place' is ${place}, and no cluster here has that name; GET /v1/hosts shows their names.`);
}

/** Refuses an endpoint whose template does not exist, or is not for this caller. */
export const unknownTemplate = (id: string) =>
  invalid(`There is no template '${id.slice(0, 80)}'; make one with POST /v1/templates.`);

/** The template that a caller names for an endpoint: one of their own, or a public one. */
export function templateFor({ registry }: Checking, caller: ApiKey, templateId: string) {
  const template = registry.template(templateId);
  if (!template || (template.ownerNo !== caller.ownerNo && !template.settings.isPublic)) {
    throw unknownTemplate(templateId);
  }
  if (isPath(template.settings.imageName) && !registry.isFirstAdmin(caller.ownerNo)) {
    throw invalid("Only the first admin's endpoints may use a template whose image is a directory.");
  }
  return template;
}

function flashBoot({ flashboot, flashBootType }: EndpointInput, before: FlashBootType): FlashBootType {
  if (flashBootType) return flashBootType;
  if (flashBootType === null) return "OFF";
  if (flashboot === undefined) return before;
  return flashboot ? (before === "OFF" ? "FLASHBOOT" : before) : "OFF";
}

/** The GPU types of all hosts. */
const gpuTypesHere = (needs: Checking): string[] =>
  factsOfHosts(needs).flatMap(({ gpus, cluster }) => [...gpus, ...(cluster?.gpuTypes ?? [])].map(({ name }) => name));

/** Refuses a GPU type that nobody has heard of. */
export function checkGpuTypes({ here, registry }: Checking, names: readonly string[], field = "gpuTypeIds"): void {
  const present = gpuTypesHere({ here, registry });
  const unknown = names.find((name) => !isGpuType(name, present));
  if (unknown !== undefined) throw invalid(`'${unknown.slice(0, 80)}' in ${field} is not a GPU type known here.`);
}

/** The GPU types that are asked for, by type or tier; refuses unknown ones. */
export function gpuTypes(
  needs: Checking,
  input: EndpointInput,
  before: readonly string[],
  modify: boolean,
): readonly string[] {
  const { gpuTypeIds, gpuIds } = input;
  if (gpuTypeIds) {
    // a type chosen earlier stays allowed after its last GPU is gone
    const added = gpuTypeIds.filter((name) => !before.includes(name));
    checkGpuTypes(needs, added);
    return gpuTypeIds;
  }
  if (gpuTypeIds === null) return [];
  if (gpuIds === undefined || gpuIds === null || gpuIds === "") return before;
  // sending back the tiers we showed must not widen a finer choice of types
  if (modify && gpuIds === tiersOfTypes(before)) return before;
  const found = typesOfTiers(gpuIds, [...gpuTypesHere(needs), ...before]);
  if ("unknown" in found)
    throw invalid(`'${found.unknown.slice(0, 80)}' in gpuIds is neither a GPU tier nor a GPU type known here.`);
  if (found.types.length === 0) throw invalid("'gpuIds' excludes every GPU type that it names.");
  return found.types;
}

/** Countries and data centres, checked. */
export function locations(text: string, field = "locations"): string {
  const codes = text
    .split(",")
    .map((code) => code.trim())
    .filter(Boolean);
  const unknown = codes.find((code) => ![...countries, ...dataCenters].some((each) => each === code));
  if (unknown !== undefined)
    throw invalid(
      `'${unknown.slice(0, 20)}' in ${field} is neither one of ${countries.join(", ")} nor a data centre such as EU-RO-1.`,
    );
  return codes.join(",");
}

/** The network volumes that are asked for; refuses those of others. */
export function volumes(
  { registry }: Checking,
  caller: ApiKey,
  input: EndpointInput,
  before: readonly string[],
): readonly string[] {
  const { networkVolumeId, networkVolumeIds } = input;
  let ids = before;
  if (networkVolumeIds !== undefined) ids = networkVolumeIds ?? [];
  else if (networkVolumeId !== undefined) ids = networkVolumeId ? [networkVolumeId] : [];
  for (const id of ids) {
    if (registry.volume(id)?.ownerNo !== caller.ownerNo)
      throw invalid(`There is no network volume '${id.slice(0, 80)}'.`);
  }
  return [...new Set(ids)];
}
