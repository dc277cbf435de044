import { invalid, nestedTooDeep } from "../../../errors.js";
import { excessOf } from "../../../json/nesting.js";
import { limits } from "../../../limits/index.js";

/** Refuses a management body that would take long to parse and check, before it is parsed. */
export function checkExtent(text: string, membersMax: number = Number.POSITIVE_INFINITY): void {
  const excess = excessOf(text, {
    depthMax: limits.managementDepthMax,
    membersMax,
    valuesMax: limits.managementValuesMax,
  });
  if (excess === "depthMax") throw nestedTooDeep();
  if (excess === "membersMax") throw invalid(`An object in the body may have ${membersMax} fields at most.`);
  if (excess === "valuesMax")
    throw invalid(
      `The body may have ${limits.managementValuesMax} names and values at most; no resource here needs more.`,
    );
}
