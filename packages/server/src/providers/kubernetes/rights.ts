import type { Namespace } from "kubernetes-types/core/v1.js";
import { type Cluster, detailOf, isAway } from "./api-server/cluster.js";

export type Rights = readonly (readonly [resource: string, verbs: readonly string[]])[];

/** What this service does in its namespace. */
export const needed: Rights = [
  ["namespaces", ["get"]],
  ["pods", ["create", "get", "list", "watch", "patch", "delete"]],
  ["pods/log", ["get"]],
  ["secrets", ["create", "get", "delete"]],
  ["persistentvolumeclaims", ["create", "get", "list", "patch", "delete"]],
];

// until version 1.34 Kubernetes asks for `get` where a WebSocket is opened, and from 1.35 on for `create` too
const socket = ["create", "get"];
/** What freezing workers needs besides. */
export const toFreeze: Rights = [["pods/exec", socket]];
/** What reaching workers through the API server needs besides. */
export const toForward: Rights = [["pods/portforward", socket]];

/** Identifies a namespace, and by that its cluster, for ever. */
export async function namespaceUid(cluster: Cluster, namespace: string): Promise<string> {
  const { metadata } = await cluster.ask<Namespace>("GET", `/api/v1/namespaces/${namespace}`);
  return metadata?.uid ?? "";
}

interface Review {
  readonly status?: { readonly allowed: boolean };
}

/** Those of the rights that are missing, as `verb resource`; or why they could not be found out. */
export async function missingRights(
  cluster: Cluster,
  namespace: string,
  rights: Rights,
): Promise<{ readonly missing: readonly string[] } | { readonly away: string }> {
  const asked = rights.flatMap(([resource, verbs]) => verbs.map((verb) => ({ resource, verb })));
  try {
    const missing = await Promise.all(
      asked.map(async ({ resource: name, verb }) => {
        const [resource = "", subresource] = name.split("/");
        const resourceAttributes = { namespace, verb, resource, ...(subresource ? { subresource } : {}) };
        const body = {
          apiVersion: "authorization.k8s.io/v1",
          kind: "SelfSubjectAccessReview",
          spec: { resourceAttributes },
        };
        const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        const { status } = await cluster.ask<Review>("POST", path, { body });
        return status?.allowed ? [] : [`${verb} ${name}`];
      }),
    );
    return { missing: missing.flat() };
  } catch (error) {
    if (isAway(error)) return { away: detailOf(error) };
    throw error;
  }
}
