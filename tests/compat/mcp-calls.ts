/** What a call of a public client does here. */
export type Outcome = "works" | { readonly refused: string } | { readonly missing: string };

export interface ClientTable {
  readonly client: string;
  readonly note: string;
  readonly calls: Readonly<Record<string, Outcome>>;
}

const hosted = "exists only at the hosted service";

/** Every tool of the MCP server, and its outcome. `tests/compat/mcp.test.ts` makes each call. */
export const mcpCalls: ClientTable = {
  client: "`@runpod/mcp-server` 4.0.0",
  note:
    "Over REST v2, the queue API and GraphQL: `RUNPOD_API_BASE_URL` is the server's address, " +
    "`RUNPOD_SERVERLESS_API_URL` that with `/sdk/v2`, and `RUNPOD_PUBLIC_GRAPHQL_URL` and `RUNPOD_AUTHED_GRAPHQL_URL` " +
    "that with `/sdk/graphql`. Its catalog tools send no key: they need `MILLRACE_PUBLIC_CATALOG=on`.",
  calls: {
    "list-endpoints": "works",
    "create-endpoint": "works",
    "get-endpoint": "works",
    "update-endpoint": "works",
    "delete-endpoint": "works",
    "set-endpoint-gpus": "works",
    "list-endpoint-workers": "works",
    "list-endpoint-releases": "works",
    "stream-worker-logs": "works",
    "list-endpoint-builds": "works",
    "get-endpoint-build": { refused: "endpoints here are not built from a repository" },
    "run-endpoint": "works",
    "runsync-endpoint": "works",
    "get-job-status": "works",
    "stream-job": "works",
    "endpoint-health": "works",
    "cancel-job": "works",
    "retry-job": { refused: "a cancelled job is not retried, by the contract; a failed one is" },
    "purge-endpoint-queue": "works",
    "list-templates": "works",
    "create-template": "works",
    "get-template": "works",
    "update-template": "works",
    "delete-template": "works",
    "list-public-templates": "works",
    "list-network-volumes": "works",
    "create-network-volume": "works",
    "get-network-volume": "works",
    "update-network-volume": "works",
    "delete-network-volume": "works",
    "list-registries": "works",
    "create-registry": "works",
    "get-registry": "works",
    "delete-registry": "works",
    "list-gpu-types": "works",
    "get-gpu-type": "works",
    "list-cpu-types": "works",
    "get-cpu-type": "works",
    "list-data-centers": "works",
    "get-data-center": "works",
    "get-capacity": "works",
    "get-ssh-keys": "works",
    "update-ssh-keys": "works",
    "list-hub-repos": "works",
    "deploy-hub-repo": { refused: hosted },
    "list-public-endpoints": "works",
    "list-clusters": "works",
    "get-cluster": { refused: hosted },
    "create-cluster": { refused: hosted },
    "update-cluster": { refused: hosted },
    "delete-cluster": { refused: hosted },
    "list-cluster-pods": { refused: hosted },
    "list-delegations": "works",
    "create-delegation": { refused: hosted },
    "revoke-delegation": { refused: hosted },
    "list-pods": "works",
    "create-pod": "works",
    "get-pod": "works",
    "update-pod": "works",
    "delete-pod": "works",
    "pod-action": "works",
    "stream-pod-logs": "works",
    "list-billing": "works",
    "list-serverless-billing": "works",
    "list-network-volume-billing": "works",
    "list-pod-billing": "works",
    "list-endpoint-billing": "works",
    "list-cluster-billing": "works",
  },
};
