import type { Endpoint, LogLine, ReleaseView, ScalingDecision, Worker } from "@millrace/api";
import { eventsOf } from "@millrace/api/client";
import { ago, shortName, span } from "@millrace/api/words";
import type { Command } from "commander";
import { shellWord } from "../called.js";
import { count } from "../count.js";
import { examples } from "../examples.js";
import { exits, Failure, hinted } from "../exit.js";
import { jsonNote } from "../json-note.js";
import { endpointId } from "../nouns/endpoints.js";
import { clipped, harmless, whyWidth } from "../output/plain.js";
import type { Terminal } from "../output/terminal.js";
import type { Tools } from "../tools.js";

/** Commands that show what an endpoint's workers do, and why. */
export function lookingCommands(program: Command, tools: Tools): void {
  logs(program, tools);
  program
    .command("workers")
    .description("List an endpoint's workers.")
    .addHelpText("after", jsonNote("an array of workers, as GET /v1/endpoints/{endpoint}/workers returns them"))
    .addHelpText("after", examples("millrace workers shout", "millrace workers shout --ended"))
    .argument("<endpoint>", "its name or id")
    .option("--ended", "also those that ended in the last day")
    .action(async (given: string, { ended }: { ended?: true }, command: Command) => {
      const calls = tools.calls(command);
      const path = `/v1/endpoints/${await endpointId(calls, given)}/workers${ended ? "?ended=true" : ""}`;
      tools.terminal(command).table(
        await calls.call<Worker[]>("GET", path),
        [
          { title: "worker", of: ({ id }) => shortName(id) },
          { title: "id", of: ({ id }) => id },
          { title: "state", of: ({ state }) => state },
          { title: "since", of: ({ since }) => ago(since) },
          { title: "jobs", of: ({ jobs }) => jobs },
          { title: "version", of: ({ version }) => version },
          { title: "GPUs", of: ({ gpus }) => gpus.map(({ name }) => name).join(", ") },
          { title: "why", of: ({ doing, why }) => clipped((doing ?? why)?.split("\n")[0] ?? "", whyWidth) },
        ],
        `No workers: they start when a job comes. millrace run ${shellWord(given)} '{…}'`,
      );
    });
  program
    .command("scaling")
    .description("Show why an endpoint did or did not scale, newest first.")
    .addHelpText("after", jsonNote("an array of decisions, as GET /v1/endpoints/{endpoint}/scaling returns them"))
    .addHelpText("after", examples("millrace scaling shout"))
    .argument("<endpoint>", "its name or id")
    .action(async (given: string, _: object, command: Command) => {
      const calls = tools.calls(command);
      const decisions = await calls.call<ScalingDecision[]>(
        "GET",
        `/v1/endpoints/${await endpointId(calls, given)}/scaling`,
      );
      tools.terminal(command).table(
        decisions,
        [
          { title: "when", of: ({ from }) => ago(from) },
          { title: "for", of: ({ from, until }) => span(Date.parse(until) - Date.parse(from)) },
          { title: "waiting", of: ({ inputs }) => Number(inputs.waiting ?? 0) },
          { title: "running", of: ({ inputs }) => Number(inputs.running ?? 0) },
          { title: "outcome", of: ({ outcome }) => outcome },
          { title: "because", of: ({ reason }) => reason },
        ],
        "No decisions yet.",
      );
    });
  program
    .command("releases")
    .description("List the versions of an endpoint, newest first.")
    .addHelpText("after", jsonNote("an array of versions, as GET /v1/endpoints/{endpoint}/releases returns them"))
    .addHelpText("after", examples("millrace releases shout"))
    .argument("<endpoint>", "its name or id")
    .action(async (given: string, _: object, command: Command) => {
      const calls = tools.calls(command);
      const releases = await calls.call<ReleaseView[]>(
        "GET",
        `/v1/endpoints/${await endpointId(calls, given)}/releases`,
      );
      tools.terminal(command).table(
        releases,
        [
          { title: "version", of: ({ version }) => version },
          { title: "made", of: ({ madeAt }) => ago(madeAt) },
          { title: "state", of: ({ state }) => state },
          { title: "workers", of: ({ workers }) => workers },
          { title: "image", of: ({ imageName }) => imageName },
          { title: "why", of: ({ why }) => clipped(why?.split("\n")[0] ?? "", whyWidth) },
        ],
        "No versions.",
      );
    });
  program
    .command("rollback")
    .description("Make a new version of an endpoint from an earlier one.")
    .addHelpText("after", jsonNote("the endpoint, as GET /v1/endpoints/{endpoint} returns it"))
    .argument("<endpoint>", "its name or id")
    .argument("<version>", "its number; see millrace releases")
    .addHelpText("after", examples("millrace rollback shout 3"))
    .action(async (given: string, version: string, _: object, command: Command) => {
      const calls = tools.calls(command);
      const path = `/v1/endpoints/${await endpointId(calls, given)}/releases`;
      const rollback = `${path}/${encodeURIComponent(version)}/rollback`;
      const endpoint = await hinted(calls.call<Endpoint>("POST", rollback), `millrace releases ${shellWord(given)}`);
      const releases = await calls.call<ReleaseView[]>("GET", path);
      const { imageName = "" } = releases.find((each) => each.version === endpoint.version) ?? {};
      const files = imageName.startsWith("/") ? ` The files in ${imageName} stay as they are now.` : "";
      tools.terminal(command).result(endpoint, `Version ${endpoint.version} has what version ${version} had.${files}`);
    });
}

function logs(program: Command, tools: Tools): void {
  program
    .command("logs")
    .description("Print what an endpoint's workers print.")
    .addHelpText(
      "after",
      jsonNote(
        "each line",
        "{ at: string, workerId: string, stream: string, text: string, jobId?: string, level?: string, message?: string }",
      ),
    )
    .argument("<endpoint>", "its name or id")
    .option("-f, --follow", "go on as it comes")
    .option("--tail <lines>", "how many of the last lines (default: 100)", count)
    .option("--since <time>", "only lines from then on: 10m, 2h, or an RFC 3339 time")
    .option("--job <job>", "only lines that belong to this job")
    .addHelpText("after", examples("millrace logs shout -f", "millrace logs shout --since 10m --job 7f3a…"))
    .action(async (given: string, options: LogOptions, command: Command) => {
      const [terminal, calls] = [tools.terminal(command), tools.calls(command)];
      const query = new URLSearchParams({ format: "ndjson", tail: String(options.tail ?? 100) });
      if (options.since) query.set("since", options.since);
      if (options.job) query.set("jobId", options.job);
      if (options.follow) query.set("follow", "true");
      const reply = await calls.open(`/v1/endpoints/${await endpointId(calls, given)}/logs?${query}`);
      if (!options.follow) {
        const lines = (await reply.text()).split("\n").filter((line) => line !== "");
        for (const line of lines) show(terminal, JSON.parse(line));
        const calling = options.job
          ? `status ${shellWord(given)} ${options.job}`
          : `workers ${shellWord(given)} --ended`;
        if (lines.length === 0) terminal.say(`No lines. millrace ${calling}`);
        return;
      }
      tools.interrupted.addEventListener("abort", () => process.exit(exits.interrupted));
      const again = `millrace logs ${shellWord(given)} -f${options.job ? ` --job ${options.job}` : ""}`;
      try {
        for await (const events of eventsOf(reply)) {
          for (const { event, data } of events) {
            if (event === "line" || event === "note") show(terminal, JSON.parse(data));
            if (event === "end") return;
          }
        }
      } catch (error) {
        if (!(error instanceof TypeError)) throw error; // the connection is gone
      }
      // a server that stops ends its replies, too: a log that is over says so
      throw new Failure(exits.unreachable, `The connection to ${calls.url} broke.`, `${again} --since 1m`);
    });
}

interface LogOptions {
  readonly follow?: true;
  readonly tail?: number;
  readonly since?: string;
  readonly job?: string;
}

function show(terminal: Terminal, line: LogLine | { readonly note: string }): void {
  if (terminal.isJson) {
    terminal.result(line, "");
    return;
  }
  if ("note" in line) {
    terminal.say(line.note);
    return;
  }
  const at = terminal.styled("dim", new Date(line.at).toTimeString().slice(0, 8));
  terminal.print(
    `${at}  ${terminal.styled("dim", `${shortName(line.workerId)} │`)} ${harmless(line.message ?? line.text)}`,
  );
}
