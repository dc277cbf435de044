import { updated } from "../../domain/access/audit.js";
import type { ApiKey } from "../../domain/access/key.js";
import type { Pod } from "../../domain/pods/pod.js";
import { hourlyRate, nanoPerUnit, type Prices, shareAfterDiscount, shownAmount } from "../../domain/usage/price.js";
import { forbidden, invalid } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import { type Caller, changeAs } from "../access/change-as.js";
import type { Needs } from "../needs.js";
import { bankAll } from "./meter-usage.js";

/** Prices as callers send and see them: in units of the currency, an hour. */
export interface PricesView {
  readonly gpus: Readonly<Record<string, number>>;
  readonly vcpu: number;
  readonly memoryGb: number;
  readonly volumeGb: number;
}

export const showPrices = ({ registry }: Needs<"registry">): PricesView => shown(registry.prices.now);

function shown({ gpus, vcpu, memoryGb, volumeGb }: Prices): PricesView {
  return {
    gpus: Object.fromEntries(Object.entries(gpus).map(([name, cost]) => [name, shownAmount(cost)])),
    vcpu: shownAmount(vcpu),
    memoryGb: shownAmount(memoryGb),
    volumeGb: shownAmount(volumeGb),
  };
}

/** Replaces all prices; one that is left out is 0. What was used before keeps the prices of its time. */
export function savePrices(
  needs: Needs<"registry" | "clock" | "usage">,
  asking: Caller,
  given: Partial<PricesView>,
): Promise<void> {
  return changeAs(needs, asking, async (caller) => {
    mayPrice(caller);
    const prices: Prices = {
      gpus: Object.fromEntries(
        Object.entries(given.gpus ?? {}).map(([name, price]) => [name, nano(`gpus.${name}`, price)]),
      ),
      vcpu: nano("vcpu", given.vcpu),
      memoryGb: nano("memoryGb", given.memoryGb),
      volumeGb: nano("volumeGb", given.volumeGb),
    };
    if (Object.keys(prices.gpus).length > limits.pricedGpusMax)
      throw invalid(`'gpus' may have ${limits.pricedGpusMax} prices at most.`);
    await bankAll(needs);
    auditing.note(updated("prices.update", "prices", { ...showPrices(needs) }, { ...shown(prices) }));
    await needs.registry.prices.save(prices);
  });
}

function mayPrice(caller: ApiKey): void {
  if (!caller.isAdmin) throw forbidden("Only an admin's key may set prices.");
}

function nano(field: string, price = 0): number {
  if (!(price >= 0 && price <= limits.priceMax))
    throw invalid(`'${field.slice(0, 100)}' must be a price an hour from 0 to ${limits.priceMax}.`);
  return Math.round(price * nanoPerUnit);
}

/** What an hour of a pod costs as it runs, or as it would run with the first GPU type that it asks for. */
export function podCost({ registry }: Needs<"registry">, { no, settings }: Pod): number {
  const prices = registry.prices.now;
  const resources = registry.workersOf(no).find(({ row }) => row.resources)?.row.resources;
  const type = settings.gpuTypeIds[0];
  const asked = {
    gpus:
      settings.computeType === "GPU" && type !== undefined ? Array(settings.gpuCount).fill({ id: "", name: type }) : [],
    cpus: settings.vcpuCount,
    memoryMib: undefined,
  };
  const { gpu, cpu } = hourlyRate(prices, resources ?? asked);
  return shownAmount(gpu + cpu);
}

/** What a user's workers, pods and volumes cost an hour now. */
export function currentSpend({ registry }: Needs<"registry">, ownerNo: number): number {
  const prices = registry.prices.now;
  const terms = registry.user(ownerNo)?.terms;
  let nano = 0;
  for (const { row } of registry.liveWorkers()) {
    const endpoint = registry.endpointByNo(row.endpointNo);
    if (endpoint?.ownerNo !== ownerNo || row.startedAt === undefined || row.wanted === "paused") continue;
    const { gpu, cpu } = hourlyRate(prices, row.resources);
    nano += (gpu + cpu) * shareAfterDiscount(endpoint.settings.type, terms);
  }
  for (const { ownerNo: owner, size } of registry.volumes()) if (owner === ownerNo) nano += size * prices.volumeGb;
  return shownAmount(Math.round(nano));
}
