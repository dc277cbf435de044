import { resolve } from "node:path";
import type { Command } from "commander";
import { examples } from "../examples.js";
import { jsonNote } from "../json-note.js";
import type { Tools } from "../tools.js";

const note = `
Workers' logs and the contents of network volumes are not part of it. With PostgreSQL, back up the database with its own
tools, and the data directories' keys with this.`;

/** Commands that copy a server's data, and bring it back. */
export function backupCommands(program: Command, tools: Tools): void {
  const dataDir = ({ data }: { data?: string }) =>
    resolve(tools.folder, data ?? (tools.env.MILLRACE_DATA_DIR || ".millrace"));
  program
    .command("backup")
    .description("Copy a server's database and keys into a new folder, while it runs.")
    .argument("<folder>", "where to")
    .option("--data <folder>", "the server's data directory (default: MILLRACE_DATA_DIR, or .millrace here)")
    .addHelpText("after", jsonNote("where it is and what is in it", "{ folder: string, files: string[] }"))
    .addHelpText("after", `${note}\n${examples("millrace backup ~/backups/2026-11-28")}`)
    .action(async (given: string, options: { data?: string }, command: Command) => {
      const { backUp } = await import("../backup.js"); // other commands need no database
      const folder = resolve(tools.folder, given);
      const files = await backUp(dataDir(options), folder);
      tools.terminal(command).result({ folder, files }, `${folder} has ${files.join(", ")}.`);
    });
  program
    .command("restore")
    .description("Make a data directory from a backup.")
    .argument("<folder>", "the backup")
    .option("--data <folder>", "the new data directory (default: MILLRACE_DATA_DIR, or .millrace here)")
    .addHelpText("after", jsonNote("where it is and what is in it", "{ folder: string, files: string[] }"))
    .addHelpText("after", examples("millrace restore ~/backups/2026-11-28 --data ./restored"))
    .action(async (given: string, options: { data?: string }, command: Command) => {
      const { restore } = await import("../backup.js");
      const folder = dataDir(options);
      const files = restore(resolve(tools.folder, given), folder);
      const words = `${folder} is ready. MILLRACE_DATA_DIR=${folder} npm start`;
      tools.terminal(command).result({ folder, files }, words);
    });
}
