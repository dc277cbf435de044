import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import { limits } from "../../limits/index.js";
import type { PodAdditions } from "./pod.js";

/** What a worker's pod has from us alone. */
const ours = ["containers", "initContainers", "ephemeralContainers", "restartPolicy", "shareProcessNamespace"];

/** What an operator's file adds to pods. */
export interface Additions {
  /** To those whose endpoint names no class. */
  readonly all: PodAdditions;
  /** To those of endpoints that name this class: all of the above, too. */
  readonly classes: ReadonlyMap<string, PodAdditions>;
}

/**
 * Reads the file: a pod template without its containers for all pods, and one for each class, which has a name. Throws one
 * sentence.
 */
export function additionsIn(path: string): Additions {
  const where = `${path} (MILLRACE_KUBERNETES_POD)`;
  const documents = [...parseAllDocuments(readFileSync(path, "utf8"))];
  if (documents.length === 0) throw new Error(`${where} is empty`);
  let all: PodAdditions | undefined;
  const classes = new Map<string, PodAdditions>();
  for (const document of documents) {
    if (document.errors[0]) throw new Error(`${where} is not YAML: ${document.errors[0].message.split("\n")[0]}`);
    const { name, ...added } = asTemplate(document.toJS(), where);
    const taken = ours.find((field) => added.spec !== undefined && field in added.spec);
    if (taken !== undefined) throw new Error(`${where} sets spec.${taken}, which is not its to set`);
    if (name === undefined ? all !== undefined : classes.has(name))
      throw new Error(`${where} has two documents ${name === undefined ? "without a name" : `named ${name}`}`);
    if (name === undefined) all = added;
    else classes.set(name, added);
  }
  const common = all ?? {};
  return { all: common, classes: new Map([...classes].map(([name, own]) => [name, together(common, own)])) };
}

interface Template extends PodAdditions {
  readonly name?: string;
}

function asTemplate(added: unknown, where: string): Template {
  const entries = typeof added === "object" && added !== null ? Object.entries(added) : undefined;
  const isRight = entries?.every(([field, value]) => {
    if (field === "name") return typeof value === "string" && value !== "" && value.length <= limits.podClassCharsMax;
    return ["metadata", "spec"].includes(field) && typeof value === "object" && value !== null;
  });
  if (!isRight) throw new Error(`${where} is not a pod template: it has metadata and spec, and a class has a name`);
  return added as Template;
}

/** What all pods have, and what a class adds: its own wins, and lists and maps are joined. */
function together(all: PodAdditions, own: PodAdditions): PodAdditions {
  const [before, after] = [all.spec ?? {}, own.spec ?? {}];
  return {
    metadata: {
      labels: { ...all.metadata?.labels, ...own.metadata?.labels },
      annotations: { ...all.metadata?.annotations, ...own.metadata?.annotations },
    },
    spec: {
      ...before,
      ...after,
      nodeSelector: { ...before.nodeSelector, ...after.nodeSelector },
      tolerations: [...(before.tolerations ?? []), ...(after.tolerations ?? [])],
      volumes: [...(before.volumes ?? []), ...(after.volumes ?? [])],
    },
  };
}
