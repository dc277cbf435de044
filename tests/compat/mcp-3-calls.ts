import type { ClientTable, Outcome } from "./mcp-calls.js";

const hosted = "exists only at the hosted service";
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
  "retry-job": { refused: "a cancelled job is not retried, by the contract; a failed one is" },
  "deploy-hub-repo": { refused: hosted },
  "create-registry-delegation": { refused: hosted },
  "delete-registry-delegation": { refused: hosted },
};
const all = (tools: readonly string[], outcome: Outcome) => Object.fromEntries(tools.map((tool) => [tool, outcome]));

const shared = "`RUNPOD_API_KEY` and the addresses of version 4, and";

/** Every tool of version 3 over each REST version, and its outcome. `tests/compat/mcp-3.test.ts` makes each call. */
export const mcp3Calls: Readonly<Record<"v1" | "v2", ClientTable>> = {
  v2: {
    client: "`@runpod/mcp-server` 3.4.0 over REST v2",
    note: `${shared} \`RUNPOD_REST_V2_API_URL\`, the server's address with \`/sdk/v2\`.`,
    calls: { ...all(works, "works"), ...all(onlyV2, "works"), ...never },
  },
  v1: {
    client: "`@runpod/mcp-server` 3.4.0 over REST v1",
    note: `${shared} \`RUNPOD_REST_VERSION=v1\` and \`RUNPOD_REST_API_URL\`, the server's address with \`/sdk/v1\`.`,
    calls: {
      ...all(works, "works"),
      ...all(onlyV2, { refused: "the client itself refuses this tool over REST v1" }),
      ...never,
    },
  },
};
