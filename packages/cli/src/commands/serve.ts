import type { Command } from "commander";
import { examples } from "../examples.js";
import type { Tools } from "../tools.js";

/** The command that runs the service itself, in this process. */
export function serveCommand(program: Command, tools: Tools): void {
  program
    .command("serve")
    .description("Run the service: queue, workers, and the API for both.")
    .option("--port <port>", "the port to listen on; MILLRACE_PORT")
    .option("--host <address>", "the address to listen on; MILLRACE_HOST")
    .option("--data-dir <folder>", "the folder that holds everything; MILLRACE_DATA_DIR")
    .option("--verbose", "show details, and ids in full; MILLRACE_LOG_LEVEL=debug")
    .addHelpText(
      "after",
      `
Settings are environment variables that begin with MILLRACE_. Stops at Ctrl-C: workers finish what they can, other
jobs go back to the queue.
${examples("millrace serve --port 9000 --data-dir ./data")}`,
    )
    .action(async ({ port, host, dataDir, verbose }: Options) => {
      tools.leavesSignals();
      const given = {
        MILLRACE_PORT: port,
        MILLRACE_HOST: host,
        MILLRACE_DATA_DIR: dataDir,
        ...(verbose ? { MILLRACE_LOG_LEVEL: "debug" } : {}),
      };
      for (const [name, value] of Object.entries(given)) if (value !== undefined) process.env[name] = value;
      await import("@millrace/server/main");
    });
}

interface Options {
  readonly port?: string;
  readonly host?: string;
  readonly dataDir?: string;
  readonly verbose?: true;
}
