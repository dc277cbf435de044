import { type ApiKey, isVisible } from "../../domain/access/key.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { RegistryAuth } from "../../domain/endpoints/registry-auth.js";
import type { Template } from "../../domain/endpoints/template.js";
import type { Volume } from "../../domain/endpoints/volume.js";
import { isPod, type Pod } from "../../domain/pods/pod.js";
import { endpointNotFound, forbidden, type Refusal } from "../../errors.js";
import type { Needs } from "../needs.js";

/**
 * Whether a key is limited to chosen endpoints. Such a key sees those endpoints, their templates without the values of
 * environments, and their volumes' names, and no other managed resource.
 */
export const isBound = ({ scope }: ApiKey): boolean => scope.kind === "endpoints";

const own = ({ ownerNo }: ApiKey, resource: { readonly ownerNo: number }): boolean => resource.ownerNo === ownerNo;

/** The templates that a key sees: all of its user's, or only the templates of its endpoints. */
export function visibleTemplates({ registry }: Needs<"registry">, caller: ApiKey): Template[] {
  const mine = registry.templates().filter((template) => own(caller, template));
  if (!isBound(caller)) return mine;
  const used = new Set(visibleEndpoints({ registry }, caller).map(({ settings }) => settings.templateId));
  return mine.filter(({ id }) => used.has(id));
}

/** What other users share with everybody: public templates, which keys of chosen endpoints do not see. */
export function publicTemplates({ registry }: Needs<"registry">, caller: ApiKey): Template[] {
  seesMore(caller, "templates of others");
  return registry.templates().filter(({ settings }) => settings.isPublic);
}

/** The volumes that a key sees: all of its user's, or only the volumes of its endpoints. */
export function visibleVolumes({ registry }: Needs<"registry">, caller: ApiKey): Volume[] {
  const mine = registry.volumes().filter((volume) => own(caller, volume));
  if (!isBound(caller)) return mine;
  const used = new Set(visibleEndpoints({ registry }, caller).flatMap(({ settings }) => settings.networkVolumeIds));
  return mine.filter(({ id }) => used.has(id));
}

/** The endpoints that a key sees. */
export const visibleEndpoints = ({ registry }: Needs<"registry">, caller: ApiKey): Endpoint[] =>
  registry.endpoints().filter((endpoint) => !isPod(endpoint) && isVisible(caller, endpoint));

/** The refusal for an endpoint that a key does not see. If it was asked for by its name, the refusal names its id. */
export function unseenEndpoint({ registry }: Needs<"registry">, caller: ApiKey, given: string): Refusal {
  const isMeant = (each: Endpoint) => each.settings.name === given && !isPod(each) && isVisible(caller, each);
  const [meant, another] = registry.endpoints().filter(isMeant);
  return endpointNotFound(given, another === undefined ? meant?.id : undefined);
}

/** A user's pods, which keys of chosen endpoints never see. */
export function visiblePods({ registry }: Needs<"registry">, caller: ApiKey): Pod[] {
  seesMore(caller, "pods");
  return registry
    .endpoints()
    .filter(isPod)
    .filter((pod) => isVisible(caller, pod));
}

/** Refuses a key that is limited to chosen endpoints. `what`: the resources that such a key never sees. */
export function seesMore(caller: ApiKey, what: string): void {
  if (isBound(caller)) throw forbidden(`This key is for chosen endpoints: it does not see ${what}.`);
}

/** A user's credentials for registries, which keys of chosen endpoints never see. */
export function visibleRegistryAuths({ registry }: Needs<"registry">, caller: ApiKey): RegistryAuth[] {
  seesMore(caller, "container registry auths");
  return registry.registryAuths().filter((auth) => own(caller, auth));
}

/** A view with its environment's values for the owner's own keys, and with their names alone for all others. */
export function forCaller<T extends { readonly env: Readonly<Record<string, string>> }>(
  caller: ApiKey,
  resource: { readonly ownerNo: number },
  view: T,
): T {
  if (own(caller, resource) && !isBound(caller)) return view;
  return { ...view, env: namesAlone(view.env) };
}

/** An environment whose values are hidden. */
export const namesAlone = (env: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.keys(env).map((name) => [name, "…"]));

/** A volume as a key sees it: a key that is limited to chosen endpoints sees only the id and name. */
export const volumeFor = <T extends { readonly id: string; readonly name: string }>(
  caller: ApiKey,
  view: T,
): T | Pick<T, "id" | "name"> => (isBound(caller) ? { id: view.id, name: view.name } : view);
