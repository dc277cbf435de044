import { deliveryStates } from "@millrace/api";
import { ago } from "@millrace/api/words";
import { type Command, Option } from "commander";
import { count } from "../count.js";
import { examples } from "../examples.js";
import { hinted } from "../exit.js";
import { jsonNote } from "../json-note.js";
import { endpointId } from "../nouns/endpoints.js";
import type { Column } from "../output/table.js";
import type { Tools } from "../tools.js";

/** What is shown of a webhook delivery. */
interface Delivery {
  readonly id: string;
  readonly jobId: string;
  readonly url: string;
  readonly state: string;
  readonly attempts: readonly { readonly at: string; readonly status?: number; readonly error?: string }[];
}

const columns: readonly Column<Delivery>[] = [
  { title: "delivery", of: ({ id }) => id },
  { title: "job", of: ({ jobId }) => jobId },
  { title: "state", of: ({ state }) => state },
  { title: "attempts", of: ({ attempts }) => attempts.length },
  { title: "last", of: ({ attempts }) => ago(attempts.at(-1)?.at) },
  { title: "answer", of: ({ attempts }) => attempts.at(-1)?.error ?? attempts.at(-1)?.status },
  { title: "to", of: ({ url }) => url },
];

interface Asked {
  readonly state?: string;
  readonly job?: string;
  readonly endpoint?: string;
  readonly before?: string;
  readonly limit?: number;
}

const path = "/v1/webhooks/deliveries";
const list = "millrace webhook deliveries";

/** Commands for single deliveries and for what signs them, below those for where they go. */
export function deliveryCommands(group: Command, tools: Tools): void {
  group
    .command("deliveries")
    .description("List the deliveries of the last day, newest first.")
    .addHelpText("after", jsonNote(`an array, as GET ${path} returns it`))
    .addOption(new Option("--state <state>", "only deliveries in this state").choices(deliveryStates))
    .option("--job <job>", "only deliveries of this job")
    .option("--endpoint <endpoint>", "only deliveries of this endpoint's jobs: its name or id")
    .option("--before <delivery>", "only older ones than this")
    .option("--limit <count>", "how many, 1 to 100 (default: 20)", count)
    .addHelpText("after", examples(list, `${list} --state failed --limit 5`, `${list} --job 7f3a…`))
    .action(async ({ state, job, endpoint, before, limit = 20 }: Asked, command: Command) => {
      const calls = tools.calls(command);
      const query = new URLSearchParams({
        limit: String(limit),
        ...(state === undefined ? {} : { state }),
        ...(job === undefined ? {} : { jobId: job }),
        ...(endpoint === undefined ? {} : { endpointId: await endpointId(calls, endpoint) }),
        ...(before === undefined ? {} : { before }),
      });
      const rows = await calls.call<Delivery[]>("GET", `${path}?${query}`);
      tools.terminal(command).table(rows, columns, "No deliveries. millrace webhook list");
    });
  group
    .command("redeliver")
    .description("Send a delivery that has ended once more, under the same id.")
    .addHelpText("after", jsonNote(`what POST ${path}/{id}/redeliver returns`))
    .argument("<delivery>", "its id; see millrace webhook deliveries")
    .addHelpText("after", examples("millrace webhook redeliver msg_5d21…"))
    .action(async (id: string, _: object, command: Command) => {
      const [terminal, calls] = [tools.terminal(command), tools.calls(command)];
      const asked = calls.call<Delivery>("POST", `${path}/${encodeURIComponent(id)}/redeliver`, {});
      const delivery = await hinted(asked, list);
      terminal.result(delivery, terminal.tableText([delivery], columns));
    });
  group
    .command("secret")
    .description("Print the secret that signs your webhooks.")
    .addHelpText("after", jsonNote("what GET /v1/webhooks/secret returns"))
    .addHelpText("after", examples("export WEBHOOK_SECRET=$(millrace webhook secret)"))
    .action(async (_: object, command: Command) => {
      const found = await tools.calls(command).call<{ secret: string }>("GET", "/v1/webhooks/secret");
      tools.terminal(command).result(found, found.secret);
    });
}
