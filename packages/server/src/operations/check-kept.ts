import { weightOf } from "../domain/endpoints/weight.js";
import { invalid } from "../errors.js";
import { limits } from "../limits/index.js";
import type { Needs } from "./needs.js";

/**
 * Refuses settings that would push the memory each server holds for an owner's endpoints and templates over its limit.
 */
export function checkKept(
  { registry }: Needs<"registry">,
  ownerNo: number,
  settings: object,
  replaced?: object | undefined,
): void {
  const before = replaced === undefined ? 0 : weightOf(replaced);
  const added = weightOf(settings) - before;
  // an owner over the limit may still shrink settings or make small edits
  if (replaced !== undefined && added <= limits.settingsBytesFree) return;
  let kept = added;
  for (const { ownerNo: owner, settings: each } of registry.templates()) if (owner === ownerNo) kept += weightOf(each);
  for (const { ownerNo: owner, settings: each, deletedAt } of registry.endpoints())
    if (owner === ownerNo && deletedAt === undefined) kept += weightOf(each);
  if (kept <= limits.settingsBytesMax) return;
  throw invalid(
    `Your endpoints and templates would take more than ${limits.settingsBytesMax / 2 ** 20} MiB of memory: delete some, or make their env smaller.`,
  );
}
