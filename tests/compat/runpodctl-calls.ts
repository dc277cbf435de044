import type { ClientTable, Outcome } from "./client-table.js";

const all = (calls: readonly string[], outcome: Outcome) => Object.fromEntries(calls.map((call) => [call, outcome]));

const works = [
  ...["doctor", "user", "ssh add-key", "ssh list-keys", "gpu list", "datacenter list"],
  ...[
    "template create",
    "template list --type user",
    "template list",
    "template get",
    "template update",
    "template delete",
  ],
  ...["network-volume create", "network-volume list", "network-volume get", "network-volume update"],
  "network-volume delete",
  ...["registry create", "registry list", "registry get", "registry delete"],
  ...["serverless create", "serverless create, a GPU type by its name", "serverless create, processors only"],
  ...["serverless list", "serverless get", "serverless update", "serverless update, without a change"],
  ...["serverless update --template-id", "serverless update --model-reference", "serverless delete"],
  ...["pod create", "pod create, processors only", "pod list", "pod list, filtered", "pod get", "pod update"],
  ...["pod stop", "pod start", "pod restart", "pod reset", "pod delete"],
  ...["billing serverless", "billing pods", "billing network-volume", "hub list", "model list"],
];

/**
 * The commands of `runpodctl`, and their outcomes. `tests/compat/runpodctl.test.ts` makes their requests, and decodes the
 * replies as strictly as the program's types do.
 */
export const runpodctlCalls: ClientTable = {
  client: "`runpodctl` 2.7.2, its requests",
  note:
    "The program is in no package registry, so its requests are made by hand here, and the replies are decoded by its types. " +
    "`RUNPOD_API_URL` is the server's address with `/sdk/v1`, `RUNPOD_GRAPHQL_URL` that with `/sdk/graphql`.",
  calls: {
    ...all(works, "works"),
    ...all(["hub get", "serverless create --hub-id"], { refused: "hub listings exist only at the hosted service" }),
    ...all(["model add"], { refused: "the model repository exists only at the hosted service" }),
  },
};
