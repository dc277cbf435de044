import type { Endpoint } from "@millrace/api";
import type { Command } from "commander";
import { endpointId, listEndpoints } from "../endpoints.js";
import type { Tools } from "../tools.js";

/** Commands for endpoints. */
export function endpointCommands(program: Command, tools: Tools): void {
  const noun = program.command("endpoint").description("Endpoints: what jobs are sent to.");
  noun
    .command("list")
    .description("List your endpoints.")
    .action(async (_: object, command: Command) => {
      const terminal = tools.terminal(command);
      terminal.table(
        await listEndpoints(tools.calls(command)),
        [
          { title: "name", of: ({ name }) => name },
          { title: "id", of: ({ id }) => id },
          { title: "for", of: ({ type }) => (type === "LB" ? "requests" : "jobs") },
          { title: "workers", of: ({ workersMin, workersMax }) => `${workersMin}–${workersMax}` },
          { title: "runs on", of: runsOn },
          { title: "version", of: ({ version }) => version },
        ],
        "No endpoints yet.",
      );
    });
  noun
    .command("get")
    .description("Show an endpoint's settings.")
    .argument("<endpoint>", "its name or id")
    .action(async (given: string, _: object, command: Command) => {
      const [terminal, calls] = [tools.terminal(command), tools.calls(command)];
      const found = await calls.call<Endpoint>("GET", `/v1/endpoints/${await endpointId(calls, given)}`);
      terminal.result(found, JSON.stringify(found, undefined, 2));
    });
}

const runsOn = ({ computeType, gpuCount, gpuTypeIds }: Endpoint): string =>
  computeType === "CPU"
    ? "CPU"
    : `${gpuCount} × ${gpuTypeIds && gpuTypeIds.length > 0 ? gpuTypeIds.join(" or ") : "any GPU"}`;
