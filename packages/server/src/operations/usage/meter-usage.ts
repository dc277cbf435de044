import { billableMs, spread, volumeGbMs } from "../../domain/usage/meter.js";
import { costOf, hourlyRate, type Prices, shareAfterDiscount } from "../../domain/usage/price.js";
import { limits } from "../../limits/index.js";
import { EndMarks } from "../../memory/end-marks.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Deposit, Mark, UsageShare } from "../../store/index.js";
import { turns } from "../../turns.js";
import type { Needs } from "../needs.js";

type Metering = Needs<"registry" | "usage" | "clock">;
type Counted = Pick<Deposit, "kind" | "no" | "ownerNo" | "resource" | "gpuType">;

const lane = ["usage"] as const;

/** What an amount costs; for workers by GPUs and processors, for volumes by their disk. */
type Costs = (amount: number) => Pick<UsageShare, "gpuCost" | "cpuCost" | "diskCost">;

/** Banks everything that was used until now, before something changes what it costs or who pays for it. */
export async function bankAll(needs: Metering): Promise<void> {
  await bankWorkers(needs, new EndMarks());
  await bankVolumes(needs);
}

/**
 * Banks what workers and pods have used since it was banked last. `over`: ended workers that are banked whole, which
 * are left out; those that now are join them.
 */
export async function bankWorkers(needs: Metering, over: EndMarks): Promise<void> {
  const { registry } = needs;
  const prices = await registry.prices.read();
  const started = registry.liveWorkers().filter(({ row }) => row.startedAt !== undefined);
  for (const worker of registry.endedWorkers())
    if (worker.row.startedAt !== undefined && !over.has(worker)) started.push(worker);
  for (let at = 0; at < started.length; at += limits.usageBankedAtOnce) {
    if (turns.isOver) await turns.take(lane);
    const some = started.slice(at, at + limits.usageBankedAtOnce);
    const ends = some.map(({ row }) => row.endedAt);
    const marks = await needs.usage.marks(
      "worker",
      some.map(({ row }) => row.no),
    );
    await needs.usage.bank(some.flatMap((worker) => workerDeposit(needs, worker, marks.get(worker.row.no), prices)));
    for (const [n, worker] of some.entries()) over.add(worker, ends[n]);
  }
}

function workerDeposit({ registry, clock }: Metering, { row }: LiveWorker, mark: Mark | undefined, prices: Prices) {
  const endpoint = registry.endpointByNo(row.endpointNo);
  if (!endpoint) return [];
  const now = clock.now();
  const kind = endpoint.settings.type === "POD" ? ("pod" as const) : ("endpoint" as const);
  const { ownerNo, id: resource } = endpoint;
  const gpuType = row.resources?.gpus[0]?.name ?? "";
  const rate = hourlyRate(prices, row.resources);
  const share = shareAfterDiscount(endpoint.settings.type, registry.user(ownerNo)?.terms);
  const costs: Costs = (ms) => ({
    gpuCost: costOf(rate.gpu, ms, share),
    cpuCost: costOf(rate.cpu, ms, share),
    diskCost: 0,
  });
  const to = row.endedAt ?? now;
  const counted = { kind, no: row.no, ownerNo, resource, gpuType };
  return deposit(counted, mark, { amount: billableMs(row, now), at: to }, row.startedAt ?? to, costs);
}

/** Banks what volumes have used since it was banked last, deleted ones to their end. */
export async function bankVolumes(needs: Metering): Promise<void> {
  const { registry, clock, usage } = needs;
  const { volumeGb } = registry.prices.now;
  const costs: Costs = (amount) => ({ gpuCost: 0, cpuCost: 0, diskCost: costOf(volumeGb, amount) });
  const volumes = registry.volumes();
  for (let at = 0; at < volumes.length; at += limits.usageBankedAtOnce) {
    if (turns.isOver) await turns.take(lane);
    const some = volumes.slice(at, at + limits.usageBankedAtOnce);
    const marks = await usage.marks(
      "volume",
      some.map(({ no }) => no),
    );
    const now = clock.now();
    const deposits = some.flatMap((volume) => {
      const counted = { kind: "volume" as const, ...volume, resource: volume.id, gpuType: "" };
      const used = { amount: volumeGbMs(volume, now), at: now };
      const mark = marks.get(volume.no);
      // one that is older than the counting of sizes counts from now on
      if (!mark && volume.sizedAt === 0) return [{ ...counted, before: undefined, mark: used, shares: [] }];
      return deposit(counted, mark, used, volume.sizedAt, costs);
    });
    await usage.bank(deposits);
  }
  await bankEndedVolumes(needs, costs);
}

async function bankEndedVolumes({ usage }: Metering, costs: Costs): Promise<void> {
  const ended = await usage.endedVolumes(limits.usageBankedAtOnce);
  if (ended.length === 0) return;
  const marks = await usage.marks(
    "volume",
    ended.map(({ no }) => no),
  );
  const deposits = ended.flatMap(({ no, id, ownerNo, gbMs, endedAt }) => {
    const mark = marks.get(no);
    const counted = { kind: "volume" as const, no, ownerNo, resource: id, gpuType: "" };
    return deposit(counted, mark, { amount: gbMs, at: endedAt }, mark?.at ?? endedAt, costs);
  });
  await usage.bank(deposits);
  await usage.forgetEndedVolumes(ended.map(({ no }) => no)); // after a crash in between, nothing is left to bank
}

/** What was used beyond the mark, spread over the time since; nothing if there is nothing. */
function deposit(counted: Counted, before: Mark | undefined, mark: Mark, beganAt: number, costs: Costs): Deposit[] {
  const added = mark.amount - (before?.amount ?? 0);
  if (added <= 0) return [];
  const { kind, no, ownerNo, resource, gpuType } = counted;
  const shares = spread(added, Math.min(before?.at ?? beganAt, mark.at - 1), mark.at).map(({ at, amount }) => ({
    at,
    amount,
    ...costs(amount),
  }));
  return [{ kind, no, ownerNo, resource, gpuType, before: before?.amount, mark, shares }];
}
