import type { ClientTable, Outcome } from "./client-table.js";

/** Why a call is refused whose subject this service does not have. */
const hosted: Outcome = { refused: "exists only at the hosted service" };
/** Why a call of `/retry` is refused in a table whose test cancels its job before. */
const retryOfCancelled: Outcome = {
  refused: "a cancelled job is not retried, by the contract; a failed one is",
};

const catalog = {
  "its catalog tools need `MILLRACE_PUBLIC_CATALOG=on`":
    "they send no key, and without one nothing is shown by default",
};

/** Every tool of the MCP server, and its outcome. `tests/compat/mcp.test.ts` makes each call. */
export const mcpCalls: ClientTable = {
  client: "`@runpod/mcp-server` 4.0.0",
  note:
    "Over REST v2, the queue API and GraphQL: `RUNPOD_API_BASE_URL` is the server's address, " +
    "`RUNPOD_SERVERLESS_API_URL` that with `/sdk/v2`, and `RUNPOD_PUBLIC_GRAPHQL_URL` and `RUNPOD_AUTHED_GRAPHQL_URL` " +
    "that with `/sdk/graphql`.",
  differences: catalog,
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
    "retry-job": retryOfCancelled,
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
    "deploy-hub-repo": hosted,
    "list-public-endpoints": "works",
    "list-clusters": "works",
    "get-cluster": hosted,
    "create-cluster": hosted,
    "update-cluster": hosted,
    "delete-cluster": hosted,
    "list-cluster-pods": hosted,
    "list-delegations": "works",
    "create-delegation": hosted,
    "revoke-delegation": hosted,
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

/** Tools of version 3 that work over both REST versions; `onlyV2` has those that the client itself refuses over v1. */
const works = [
  ...["list-endpoints", "create-endpoint", "get-endpoint", "update-endpoint", "delete-endpoint", "set-endpoint-gpus"],
  ...["run-endpoint", "runsync-endpoint", "get-job-status", "stream-job", "endpoint-health", "cancel-job"],
  ...["purge-endpoint-queue", "list-templates", "create-template", "get-template", "update-template"],
  ...["delete-template", "list-network-volumes", "create-network-volume", "get-network-volume"],
  ...["update-network-volume", "delete-network-volume", "list-container-registry-auths"],
  ...["create-container-registry-auth", "get-container-registry-auth", "delete-container-registry-auth"],
  ...["list-gpu-types", "list-data-centers", "get-capacity", "list-hub-repos", "list-public-endpoints"],
  ...["list-pods", "create-pod", "get-pod", "update-pod", "stop-pod", "start-pod", "delete-pod"],
];
const onlyV2 = [
  ...["list-endpoint-releases", "list-endpoint-workers", "stream-worker-logs", "get-gpu-type", "list-cpu-types"],
  ...["get-cpu-type", "get-data-center", "restart-pod", "stream-pod-logs", "list-registry-delegations", "get-billing"],
];
const never: Record<string, Outcome> = {
  "retry-job": retryOfCancelled,
  "deploy-hub-repo": hosted,
  "create-registry-delegation": hosted,
  "delete-registry-delegation": hosted,
};
const all = (tools: readonly string[], outcome: Outcome) => Object.fromEntries(tools.map((tool) => [tool, outcome]));

const shared = "`RUNPOD_API_KEY` and the addresses of version 4, and";

/** Every tool of version 3 over each REST version, and its outcome. `tests/compat/mcp-3.test.ts` makes each call. */
export const mcp3Calls: Readonly<Record<"v1" | "v2", ClientTable>> = {
  v2: {
    client: "`@runpod/mcp-server` 3.4.0 over REST v2",
    note: `${shared} \`RUNPOD_REST_V2_API_URL\`, the server's address with \`/sdk/v2\`.`,
    differences: catalog,
    calls: { ...all(works, "works"), ...all(onlyV2, "works"), ...never },
  },
  v1: {
    client: "`@runpod/mcp-server` 3.4.0 over REST v1",
    note: `${shared} \`RUNPOD_REST_VERSION=v1\` and \`RUNPOD_REST_API_URL\`, the server's address with \`/sdk/v1\`.`,
    differences: catalog,
    calls: {
      ...all(works, "works"),
      ...all(onlyV2, { refused: "the client itself refuses this tool over REST v1" }),
      ...never,
    },
  },
};
