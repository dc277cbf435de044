import type { ApiKey } from "../../domain/access/key.js";
import { isSameType } from "../../domain/hosts/gpu.js";
import type { Pod } from "../../domain/pods/pod.js";
import { visiblePods } from "../access/visible.js";
import type { Needs } from "../needs.js";

/** Which pods a list has: each field that is given must match (contract: REST v1, GET /pods). */
export interface PodFilter {
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly imageName?: string | undefined;
  readonly templateId?: string | undefined;
  readonly networkVolumeId?: string | undefined;
  /** Pods are no endpoint's: none match. */
  readonly endpointId?: string | undefined;
  readonly computeType?: string | undefined;
  readonly desiredStatus?: string | undefined;
  /** Any of these. */
  readonly gpuTypeIds?: readonly string[] | undefined;
  readonly cpuFlavorIds?: readonly string[] | undefined;
  readonly dataCenterIds?: readonly string[] | undefined;
}

/** The caller's pods that match a filter, oldest first. */
export function listPods(needs: Needs<"registry" | "here">, caller: ApiKey, filter: PodFilter): Pod[] {
  return visiblePods(needs, caller).filter((pod) => matches(needs, pod, filter));
}

function matches({ registry, here }: Needs<"registry" | "here">, pod: Pod, filter: PodFilter): boolean {
  const { settings } = pod;
  const is = (wanted: string | undefined, value: string) => wanted === undefined || wanted === value;
  if (filter.endpointId !== undefined) return false;
  const isPlain =
    is(filter.id, pod.id) &&
    is(filter.name, settings.name) &&
    is(filter.imageName, settings.pod.container.imageName) &&
    is(filter.templateId, settings.templateId) &&
    is(filter.networkVolumeId, settings.networkVolumeIds[0] ?? "") &&
    is(filter.computeType, settings.computeType) &&
    is(filter.desiredStatus, settings.pod.desiredStatus);
  if (!isPlain) return false;
  const rows = registry.workersOf(pod.no).map(({ row }) => row);
  const has = (wanted: readonly string[] | undefined, values: readonly string[]) =>
    wanted === undefined || wanted.some((each) => values.some((value) => isSameType(value, each)));
  const gpus = rows.flatMap(({ resources }) => resources?.gpus.map(({ name }) => name) ?? []);
  const places = rows.flatMap(({ hostNo }) =>
    here.tends(hostNo) ? (here.facts().location ?? []) : placeOf(registry, hostNo),
  );
  return (
    has(filter.gpuTypeIds, gpus.length > 0 ? gpus : settings.gpuTypeIds) &&
    has(filter.cpuFlavorIds, settings.cpuFlavorIds ?? []) &&
    has(filter.dataCenterIds, places.length > 0 ? places : settings.dataCenterIds)
  );
}

const placeOf = ({ hosts }: Needs<"registry">["registry"], hostNo: number) =>
  hosts.find(({ no }) => no === hostNo)?.location ?? [];
