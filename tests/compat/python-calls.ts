import type { ClientTable, Outcome } from "./client-table.js";

const all = (calls: readonly string[], outcome: Outcome) => Object.fromEntries(calls.map((call) => [call, outcome]));

const functions = [
  ...["get_user", "update_user_settings", "get_gpus", "get_gpu", "create_template", "create_endpoint"],
  ...["get_endpoints", "update_endpoint_template", "create_container_registry_auth", "update_container_registry_auth"],
  ...["delete_container_registry_auth", "create_pod", "get_pods", "get_pod", "stop_pod", "resume_pod"],
  "terminate_pod",
];

/** The management functions of the Python package, and their outcomes. `tests/compat/python-management.test.ts` makes each call. */
export const pythonCalls: Readonly<Record<"1" | "2", ClientTable>> = {
  "1": {
    client: "PyPI `runpod` 1.12.0, its management functions",
    note: "Over GraphQL: `RUNPOD_API_BASE_URL` is the server's address with `/sdk`.",
    calls: all(functions, "works"),
  },
  "2": {
    client: "PyPI `runpod` 2.0.0rc2, its management functions",
    note: "Over REST v2 and GraphQL: `RUNPOD_API_BASE_URL` is the server's address with `/sdk`.",
    calls: all(functions, "works"),
  },
};

const apps: Outcome = { refused: "apps, their environments and builds exist only at the hosted service" };

/** The management calls of `runpod-flash`, and their outcomes. `tests/compat/flash.test.ts` makes each call. */
export const flashCalls: ClientTable = {
  client: "`runpod-flash` 1.21.0",
  note:
    "Over GraphQL, REST v1 and the queue API: `RUNPOD_API_BASE_URL` is the server's address with `/sdk`, " +
    "`RUNPOD_ENDPOINT_BASE_URL` that with `/sdk/v2`, `RUNPOD_REST_API_URL` that with `/sdk/v1`, and `RUNPOD_HAPI_URL` " +
    "the address alone.",
  differences: {
    "calls of load-balanced endpoints are not tested":
      "the client fixes `https://{id}.{host}`: it needs `MILLRACE_LB_DOMAIN`, its DNS and TLS",
  },
  calls: {
    ...all(
      [
        ...["ServerlessEndpoint.deploy", "ServerlessEndpoint.runsync", "ServerlessEndpoint.undeploy"],
        ...["CpuServerlessEndpoint.deploy", "CpuServerlessEndpoint.undeploy", "NetworkVolume.deploy"],
        ...["save_endpoint", "endpoint_exists", "delete_endpoint", "get_template", "update_template"],
        ...["get_gpu_lowest_price_stock_status", "get_cpu_specific_stock_status", "create_network_volume"],
        ...["list_network_volumes", "fetch_logs", "list_flash_apps", "get_flash_build", "get_flash_environment"],
        ...["get_flash_environment_by_name", "get_flash_auth_request_status"],
      ],
      "works",
    ),
    ...all(
      [
        ...["get_flash_app", "get_flash_app_by_name", "create_flash_app", "create_flash_environment"],
        ...["list_flash_builds_by_app_id", "list_flash_environments_by_app_id", "delete_flash_app"],
        ...["delete_flash_environment", "prepare_artifact_upload", "finalize_artifact_upload"],
        ...["update_build_manifest", "deploy_build_to_environment", "create_flash_auth_request"],
      ],
      apps,
    ),
  },
};
