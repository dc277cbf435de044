import type { Namespace } from "kubernetes-types/core/v1.js";
import { type Cluster, detailOf, isAway } from "./cluster.js";

/** What this service does in its namespace. */
const needed: readonly (readonly [resource: string, verbs: readonly string[]])[] = [
  ["namespaces", ["get"]],
  ["pods", ["create", "get", "list", "watch", "patch", "delete"]],
  ["pods/log", ["get"]],
  ["secrets", ["create", "get", "delete"]],
  ["persistentvolumeclaims", ["create", "get", "list", "patch", "delete"]],
];

/** What freezing workers needs besides: until version 1.34 `get` is asked for, and from 1.35 on `create` too. */
const toFreeze: typeof needed = [["pods/exec", ["create", "get"]]];

/** Identifies a namespace, and by that its cluster, for ever. */
export async function namespaceUid(cluster: Cluster, namespace: string): Promise<string> {
  const { metadata } = await cluster.ask<Namespace>("GET", `/api/v1/namespaces/${namespace}`);
  return metadata?.uid ?? "";
}

interface Review {
  readonly status?: { readonly allowed: boolean };
}

/** The rights that are missing, as `verb resource`; or why they could not be found out. */
export async function missingRights(
  cluster: Cluster,
  namespace: string,
  { freezes }: { readonly freezes: boolean },
): Promise<{ readonly missing: readonly string[] } | { readonly away: string }> {
  const asked = [...needed, ...(freezes ? toFreeze : [])].flatMap(([resource, verbs]) =>
    verbs.map((verb) => ({ resource, verb })),
  );
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
