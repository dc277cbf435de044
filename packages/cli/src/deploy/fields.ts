import type { Calls } from "../calls.js";
import { exits, Failure } from "../exit.js";
import type { Fields } from "../fields.js";
import { nouns } from "../nouns/nouns.js";
import { find } from "../nouns/resources.js";
import type { DeployConfig } from "./config.js";

const kindOf = (noun: string) => nouns.find((each) => each.noun === noun) as (typeof nouns)[number];

/** The template's and the endpoint's fields of a deployment. */
export async function fieldsOf(
  calls: Calls,
  config: DeployConfig,
  source: { readonly imageName: string; readonly command: readonly string[] },
): Promise<{ template: Fields; endpoint: Fields }> {
  const { scaling = {}, gpus, cpus, env = {} } = config;
  if (gpus && cpus !== undefined) throw new Failure(exits.usage, "Workers have either gpus or cpus, not both.");
  if (scaling.queue_delay !== undefined && scaling.requests_per_worker !== undefined)
    throw new Failure(exits.usage, "Workers are started by either queue_delay or requests_per_worker, not both.");
  await assertSecrets(calls, env);
  const volumes = await Promise.all((config.volumes ?? []).map((name) => find(calls, kindOf("volume"), name)));
  const registry = config.registry === undefined ? undefined : await find(calls, kindOf("registry"), config.registry);
  const template = {
    imageName: source.imageName,
    dockerStartCmd: config.command ?? source.command,
    env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, valueOfVariable(value)])),
    ports: config.ports,
    containerDiskInGb: config.disk_gb,
    containerRegistryAuthId: registry?.id,
  };
  const endpoint = {
    type: config.kind === undefined ? undefined : config.kind === "queue" ? "QB" : "LB",
    computeType: cpus === undefined ? undefined : "CPU",
    vcpuCount: cpus,
    gpuTypeIds: gpus,
    gpuCount: config.gpu_count,
    minCudaVersion: config.cuda,
    place: config.place,
    podClass: config.pod_class,
    networkVolumeIds: config.volumes === undefined ? undefined : volumes.map(({ id }) => id),
    workersMin: scaling.workers_min,
    workersMax: scaling.workers_max,
    idleTimeout: scaling.idle_timeout,
    ...scalerOf(scaling),
    executionTimeoutMs: config.timeout === undefined ? undefined : config.timeout * 1_000,
    flashboot: config.flashboot,
  };
  return { template: given(template), endpoint: given(endpoint) };
}

/** A worker whose secret is missing does not start: better said here. */
async function assertSecrets(calls: Calls, env: NonNullable<DeployConfig["env"]>): Promise<void> {
  const wanted = Object.values(env).flatMap((value) => (typeof value === "object" ? [value.secret] : []));
  if (wanted.length === 0) return;
  const known = new Set((await calls.call<{ name: string }[]>("GET", "/v1/secrets")).map(({ name }) => name));
  const missing = wanted.find((name) => !known.has(name));
  if (missing === undefined) return;
  const how = `millrace secret create name=${missing} value=@FILE`;
  throw new Failure(exits.usage, `There is no secret "${missing}", which env names.`, how);
}

function scalerOf({ queue_delay: delay, requests_per_worker: requests }: NonNullable<DeployConfig["scaling"]>): Fields {
  if (delay !== undefined) return { scalerType: "QUEUE_DELAY", scalerValue: delay };
  if (requests !== undefined) return { scalerType: "REQUEST_COUNT", scalerValue: requests };
  return {};
}

const valueOfVariable = (value: NonNullable<DeployConfig["env"]>[string]): string =>
  typeof value === "object" ? `{{ RUNPOD_SECRET_${value.secret} }}` : String(value);

/** A field that a file does not name stays as it is. */
const given = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
