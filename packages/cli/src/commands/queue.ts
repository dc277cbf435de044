import { type HealthBody, jobStatuses, type StatusBody } from "@millrace/api";
import { jobErrorOf, span } from "@millrace/api/words";
import { type Command, Option } from "commander";
import { shellWord } from "../called.js";
import { count } from "../count.js";
import { examples } from "../examples.js";
import { jsonNote } from "../json-note.js";
import { endpointId } from "../nouns/endpoints.js";
import { clipped, whyWidth } from "../output/plain.js";
import type { Tools } from "../tools.js";

/** Commands for the queue of an endpoint. */
export function queueCommands(program: Command, tools: Tools): void {
  program
    .command("requests")
    .description("List an endpoint's jobs, newest first.")
    .addHelpText("after", jsonNote("the requests that GET /v2/{endpoint}/requests returns, as an array"))
    .argument("<endpoint>", "its name or id")
    .addOption(new Option("--status <status>", "only jobs in this state").choices(jobStatuses))
    .option("--limit <count>", "how many, 1 to 100 (default: 20)", count)
    .addHelpText("after", examples("millrace requests shout --status FAILED --limit 5"))
    .action(async (given: string, options: { status?: string; limit?: number }, command: Command) => {
      const [terminal, calls] = [tools.terminal(command), tools.calls(command)];
      const query = new URLSearchParams({
        limit: String(options.limit ?? 20),
        ...(options.status ? { status: options.status } : {}),
      });
      const { requests } = await calls.call<{ requests: StatusBody[] }>(
        "GET",
        `/v2/${await endpointId(calls, given)}/requests?${query}`,
      );
      terminal.table(
        requests,
        [
          { title: "job", of: ({ id }) => id },
          { title: "state", of: ({ status }) => status },
          { title: "waited", of: ({ delayTime }) => span(delayTime) },
          { title: "ran", of: ({ executionTime }) => span(executionTime) },
          { title: "retries", of: ({ retries }) => retries },
          {
            title: "why",
            of: ({ error, waitDetail }) =>
              clipped((error === undefined ? waitDetail : jobErrorOf(error).summary)?.split("\n")[0] ?? "", whyWidth),
          },
        ],
        `No jobs. millrace run ${shellWord(given)} '{…}'`,
      );
    });

  program
    .command("health")
    .description("Count an endpoint's jobs and workers by state.")
    .addHelpText("after", jsonNote("the counts, as GET /v2/{endpoint}/health returns them"))
    .addHelpText("after", examples("millrace health shout"))
    .argument("<endpoint>", "its name or id")
    .action(async (given: string, _: object, command: Command) => {
      const [terminal, calls] = [tools.terminal(command), tools.calls(command)];
      const health = await calls.call<HealthBody>("GET", `/v2/${await endpointId(calls, given)}/health`);
      const words = (counts: Readonly<Record<string, number>>) =>
        Object.entries(counts)
          .map(([state, count]) => `${count} ${state.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)}`)
          .join(" · ");
      terminal.result(health, `jobs     ${words(health.jobs)}\nworkers  ${words(health.workers)}`);
    });

  program
    .command("purge")
    .description("Cancel all jobs of an endpoint that wait.")
    .addHelpText("after", jsonNote("how many were cancelled, as POST /v2/{endpoint}/purge-queue returns it"))
    .addHelpText("after", examples("millrace purge shout --yes"))
    .argument("<endpoint>", "its name or id")
    .option("--yes", "do not ask")
    .action(async (given: string, options: { yes?: true }, command: Command) => {
      const [terminal, calls] = [tools.terminal(command), tools.calls(command)];
      const endpoint = await endpointId(calls, given);
      if (!options.yes) {
        const { jobs } = await calls.call<HealthBody>("GET", `/v2/${endpoint}/health`);
        if (jobs.inQueue === 0)
          return terminal.result({ removed: 0, status: "completed" }, `No job waits at "${given}".`);
        await terminal.confirm(
          `This cancels the ${jobs.inQueue} waiting job${jobs.inQueue === 1 ? "" : "s"} of "${given}".`,
          `millrace purge ${shellWord(given)} --yes`,
        );
      }
      const body = await calls.call<{ removed: number; status: string }>("POST", `/v2/${endpoint}/purge-queue`);
      terminal.result(body, `${body.removed} job${body.removed === 1 ? "" : "s"} cancelled`);
    });
}
