import { readInstance } from "../../../domain/hosts/cpu.js";
import { neededCuda } from "../../../domain/hosts/cuda.js";
import { gpuTiers } from "../../../domain/hosts/gpu.js";
import { countryOf } from "../../../domain/hosts/host.js";
import { gpuPrice, shownAmount } from "../../../domain/usage/price.js";
import {
  type Availability,
  cpuAvailability,
  cpuCatalog,
  dataCenterCatalog,
  gpuAvailability,
  gpuCatalog,
  type Wish,
} from "../../../operations/hosts/catalog.js";
import type { Context } from "./context.js";

/** Availability in the words of public clients; null if there is nothing. */
const stockOf = (level: Availability) =>
  ({ NONE: null, LOW: "Low", MEDIUM: "Medium", HIGH: "High" })[level] as string | null;

export interface PriceInput {
  readonly gpuCount?: number | null;
  readonly dataCenterId?: string | null;
  readonly allowedCudaVersions?: readonly string[] | null;
  readonly minCudaVersion?: string | null;
  readonly minMemoryInGb?: number | null;
  readonly minVcpuCount?: number | null;
}
const wishOf = (input: PriceInput | null | undefined): Wish => ({
  count: Math.max(1, input?.gpuCount ?? 1),
  dataCenterId: input?.dataCenterId ?? undefined,
  minCuda: neededCuda(input ?? {}),
  least: { cpus: input?.minVcpuCount ?? 0, memoryGb: input?.minMemoryInGb ?? 0 },
});

export type GpuFilter = { readonly id?: string | null; readonly ids?: readonly string[] | null };

function gpuTypes({ input }: { input?: GpuFilter | null }, { parts, answer }: Context) {
  const wanted = input?.id ? [input.id] : input?.ids;
  const types = gpuCatalog(parts).filter(({ id }) => !wanted || wanted.includes(id));
  return answer.list(types, (type) => ({
    ...type,
    secureCloud: true,
    communityCloud: false,
    securePrice: priceOf(parts, type.id),
    lowestPrice: ({ input: asked }: { input?: PriceInput | null }, context: Context) => ({
      gpuName: type.displayName,
      gpuTypeId: type.id,
      uninterruptablePrice: priceOf(context.parts, type.id, asked?.gpuCount),
      stockStatus: stockOf(gpuAvailability(context.parts, type.id, wishOf(asked))),
      gpuTypeCudaVersions: [],
      availableGpuCounts: Array.from({ length: type.maxGpuCount }, (_, n) => n + 1),
    }),
  }));
}

/** What an hour of some GPUs costs; null if they have no price. */
function priceOf({ registry }: Context["parts"], typeId: string, count?: number | null): number | null {
  const price = gpuPrice(registry.prices.now, typeId);
  return price === undefined ? null : shownAmount(price * (count ?? 1));
}

const serverlessGpuPools = () => Object.entries(gpuTiers).map(([id, gpuTypeIds]) => ({ id, gpuTypeIds }));

export const dataCenters = (_: unknown, { parts }: Context) =>
  dataCenterCatalog(parts).map(({ id, isHere }) => ({
    id,
    name: id,
    location: countryOf(id),
    storageSupport: true,
    gpuAvailability: ({ input }: { input?: PriceInput | null }, context: Context) =>
      isHere ? gpusAt(context, id, input) : [],
  }));

const gpusAt = ({ parts }: Context, dataCenterId: string, input: PriceInput | null | undefined) =>
  gpuCatalog(parts)
    .filter(({ maxGpuCount }) => maxGpuCount > 0)
    .map(({ id, displayName }) => {
      const level = gpuAvailability(parts, id, { ...wishOf(input), dataCenterId });
      return {
        gpuTypeId: id,
        displayName,
        gpuTypeDisplayName: displayName,
        stockStatus: stockOf(level),
        available: level !== "NONE",
      };
    });

export interface Specifics {
  readonly dataCenterId?: string | null;
  readonly instanceId?: string | null;
}

/** The processors of an instance such as cpu3g-2-8. */
const cpusOf = (instanceId: string | null | undefined): number | undefined => {
  const instance = readInstance(instanceId ?? "");
  return instance && Math.max(1, instance.cpus);
};

const cpuFlavors = ({ input }: { input?: { id?: string | null } | null }, { parts }: Context) =>
  cpuCatalog(parts)
    .filter(({ id }) => !input?.id || id === input.id)
    .map(({ id, group, gbPerCpu, cpusMax }) => ({
      id,
      groupName: group,
      displayName: id,
      minVcpu: 1,
      maxVcpu: cpusMax,
      ramMultiplier: gbPerCpu,
      specifics: ({ input: asked }: { input?: Specifics | null }, context: Context) => ({
        stockStatus: stockOf(
          cpuAvailability(context.parts, {
            count: cpusOf(asked?.instanceId),
            dataCenterId: asked?.dataCenterId ?? undefined,
          }),
        ),
      }),
    }));

const cpuTypes = (_: unknown, { parts }: Context) =>
  cpuCatalog(parts).map(({ id, group }) => ({ id, displayName: group }));

export const catalogResolvers = { gpuTypes, serverlessGpuPools, dataCenters, cpuFlavors, cpuTypes };
