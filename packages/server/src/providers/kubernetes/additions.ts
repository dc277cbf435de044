import { readFileSync } from "node:fs";
import { parse } from "yaml";
import type { PodAdditions } from "./pod.js";

/** What a worker's pod has from us alone. */
const ours = ["containers", "initContainers", "ephemeralContainers", "restartPolicy", "shareProcessNamespace"];

/** What an operator's file adds to every pod: a pod template without its containers. Throws one sentence. */
export function additionsIn(path: string): PodAdditions {
  const added = asTemplate(parse(readFileSync(path, "utf8")));
  if (!added) throw new Error(`${path} (MILLRACE_KUBERNETES_POD) is not a pod template: it has metadata and spec`);
  const taken = ours.find((field) => added.spec !== undefined && field in added.spec);
  if (taken !== undefined)
    throw new Error(`${path} (MILLRACE_KUBERNETES_POD) sets spec.${taken}, which is not its to set`);
  return added;
}

function asTemplate(added: unknown): PodAdditions | undefined {
  if (typeof added !== "object" || added === null) return undefined;
  const isKnown = Object.entries(added).every(
    ([name, value]) => ["metadata", "spec"].includes(name) && typeof value === "object" && value !== null,
  );
  return isKnown ? (added as PodAdditions) : undefined;
}
