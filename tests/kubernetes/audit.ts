import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What an account asked of an API server. */
export interface Asked {
  /** Such as `get pods/log`. */
  readonly right: string;
  readonly isAllowed: boolean;
}

interface Entry {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: { readonly apiGroup?: string; readonly resource: string; readonly subresource?: string };
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The settings of an API server that writes down each request, in a folder. */
export function auditSettings(folder: string): string[] {
  const policy = { apiVersion: "audit.k8s.io/v1", kind: "Policy", rules: [{ level: "Metadata" }] };
  const path = join(folder, "policy.json");
  // a stream has its entry when it begins, and another when it ends
  writeFileSync(path, JSON.stringify({ ...policy, omitStages: ["RequestReceived"] }));
  return [`--audit-policy-file=${path}`, `--audit-log-path=${join(folder, "audit.log")}`, "--audit-log-mode=blocking"];
}

/** What an account has asked so far of resources of Kubernetes' own group, each once. */
export function askedBy(username: string, folder: string): Asked[] {
  const lines = readFileSync(join(folder, "audit.log"), "utf8").split("\n").slice(0, -1);
  const entries = lines.map((line) => JSON.parse(line) as Entry).filter(({ user }) => user.username === username);
  const asked = new Map<string, Asked>();
  for (const { verb, objectRef, annotations } of entries) {
    if (!objectRef || objectRef.apiGroup) continue;
    const { resource, subresource } = objectRef;
    const right = `${verb} ${resource}${subresource ? `/${subresource}` : ""}`;
    const isAllowed = annotations?.["authorization.k8s.io/decision"] === "allow";
    asked.set(`${right} ${isAllowed}`, { right, isAllowed });
  }
  return [...asked.values()];
}
