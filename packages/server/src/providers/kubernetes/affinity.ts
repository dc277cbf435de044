import type { Affinity, NodeAffinity, NodeSelectorRequirement, PodAffinity } from "kubernetes-types/core/v1.js";
import type { ImageSpec } from "../../provider.js";

/** What decides about a pod's node besides the pod. */
interface NodeSettings {
  /** The label of nodes that names their GPUs' type. */
  readonly gpuLabel: string;
  readonly hasVolumesOfOneNode?: boolean | undefined;
}

/** Which volumes a pod has mounted. */
export const mountLabel = (volumeId: string): string => `volume.millrace/${volumeId.toLowerCase()}`;

/** A node's label has a dash for each blank of a type's name. */
export const labelOf = (type: string): string => type.trim().replace(/\s+/g, "-");

/** Where a pod may run: as its operator says, on nodes with its GPUs, and with the pods that have its volume mounted. */
export function affinityOf(spec: ImageSpec, settings: NodeSettings, added?: Affinity): Affinity | undefined {
  const nodeAffinity = nodeAffinityOf(spec, settings, added?.nodeAffinity);
  const podAffinity = settings.hasVolumesOfOneNode ? podAffinityOf(spec, added?.podAffinity) : undefined;
  if (!nodeAffinity && !podAffinity) return added;
  return { ...added, ...(nodeAffinity ? { nodeAffinity } : {}), ...(podAffinity ? { podAffinity } : {}) };
}

/**
 * With the pods that have its volume mounted, if there are any. Of several volumes that is only a wish: the first pod of
 * one of them would find no node where others have another one.
 */
function podAffinityOf({ mounts }: ImageSpec, added?: PodAffinity): PodAffinity | undefined {
  const terms = [...new Set(mounts.map(({ volumeId }) => mountLabel(volumeId)))].map((key) => ({
    labelSelector: { matchExpressions: [{ key, operator: "Exists" }] },
    topologyKey: "kubernetes.io/hostname",
  }));
  if (terms.length === 0) return undefined;
  const must = "requiredDuringSchedulingIgnoredDuringExecution";
  const wish = "preferredDuringSchedulingIgnoredDuringExecution";
  if (terms.length === 1) return { ...added, [must]: [...(added?.[must] ?? []), ...terms] };
  const weighted = terms.map((podAffinityTerm) => ({ weight: 100, podAffinityTerm }));
  return { ...added, [wish]: [...(added?.[wish] ?? []), ...weighted] };
}

/**
 * Of the nodes that the operator allows, those that have one of the GPU types, the first ones preferred, and a driver that
 * is new enough.
 */
function nodeAffinityOf({ gpuWish }: ImageSpec, { gpuLabel }: NodeSettings, added?: NodeAffinity) {
  if (gpuWish === undefined || gpuWish.count === 0) return undefined;
  const types = gpuWish.types.map(labelOf);
  const isOne = (values: string[]) => ({ key: gpuLabel, operator: "In", values });
  const ofType = types.length === 0 ? [] : [isOne(types)];
  const ofDriver = gpuWish.minCuda === undefined ? [[]] : newEnough(gpuWish.minCuda);
  if (ofType.length === 0 && gpuWish.minCuda === undefined) return undefined;
  // each of these terms is enough by itself
  const terms = added?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [{}];
  return {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: terms.flatMap((term) =>
        ofDriver.map((driver) => ({
          ...term,
          matchExpressions: [...(term.matchExpressions ?? []), ...ofType, ...driver],
        })),
      ),
    },
    preferredDuringSchedulingIgnoredDuringExecution: [
      ...types.map((type, rank) => ({
        weight: weightOf(rank, types.length),
        preference: { matchExpressions: [isOne([type])] },
      })),
      ...(added?.preferredDuringSchedulingIgnoredDuringExecution ?? []),
    ],
  };
}

/** Where NVIDIA's feature discovery says which CUDA version a node's driver supports: the label, and its older name. */
const cudaLabels = ["nvidia.com/cuda.runtime-version", "nvidia.com/cuda.runtime"] as const;

/** Nodes whose driver supports a CUDA version such as 12.8, and nodes whose labels do not say what theirs supports. */
function newEnough(version: string): NodeSelectorRequirement[][] {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const above = (key: string, value: number) => ({ key, operator: "Gt", values: [String(value)] });
  return [
    ...cudaLabels.flatMap((label) => [
      [above(`${label}.major`, major)],
      [
        { key: `${label}.major`, operator: "In", values: [String(major)] },
        ...(minor === 0 ? [] : [above(`${label}.minor`, minor - 1)]),
      ],
    ]),
    cudaLabels.map((label) => ({ key: `${label}.major`, operator: "DoesNotExist" })),
  ];
}

/** From 100 for the first to 1 for the last: how full nodes are counts too, and must not outweigh the order. */
const weightOf = (rank: number, count: number): number =>
  count === 1 ? 100 : 100 - Math.round((rank * 99) / (count - 1));
