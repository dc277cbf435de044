import type { Command } from "commander";
import type { DeployOptions } from "../deploy/deploy.js";
import { examples } from "../examples.js";
import { jsonNote } from "../json-note.js";
import type { Tools } from "../tools.js";

/** The command that makes an endpoint from a folder. */
export function deployCommand(program: Command, tools: Tools): void {
  program
    .command("deploy")
    .description("Create or update, by its name, the endpoint that a folder describes.")
    .addHelpText(
      "after",
      jsonNote(
        "the endpoint",
        "{ name: string, id: string, version: number, templateId: string, url: string, isNew: boolean }",
      ),
    )
    .argument("[folder]", "its folder, with millrace.toml or millrace.yaml if there is one; or the handler's file", ".")
    .option("--name <name>", "what the endpoint is called (default: as its folder, or as the file if one is named)")
    .option("--image <image>", "run a container image instead of the handler in the folder")
    .option("--build", "build the folder's Dockerfile with Docker, and run that image")
    .option("--schema", "print the JSON schema of millrace.toml and millrace.yaml, for editors")
    .addHelpText(
      "after",
      `
Deploying again changes what differs: workers are replaced if their code or what they are made of has changed, and jobs
that wait stay. A setting that millrace.toml named when it was last deployed from here, and names no more, goes back to its
default; others stay as they are. Variables are replaced as a whole.

millrace.toml, of which every line is optional:
  name = "shout"
  gpus = ["NVIDIA L4"]
  timeout = 600
  [scaling]
  workers_max = 3
  idle_timeout = 60
  queue_delay = 4
  [env]
  LEVEL = "info"
  HF_TOKEN = { secret = "hf" }
${examples("millrace deploy ./shout", "millrace deploy ./shout --build --name shout-2")}`,
    )
    .action(async (given: string, options: DeployOptions & { schema?: true }, command: Command) => {
      const terminal = tools.terminal(command);
      // loaded only here: other commands need not wait for it
      if (options.schema) {
        const { DeployConfig } = await import("../deploy/config.js");
        return terminal.print(JSON.stringify(DeployConfig, undefined, 2));
      }
      const { deploy } = await import("../deploy/deploy.js");
      await deploy(tools, terminal, tools.calls(command), given, options);
    });
}
