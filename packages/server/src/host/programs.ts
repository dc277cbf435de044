import { createRequire } from "node:module";

/** What runs in a thread or process of its own, by its name among the `imports` of this package. */
export type ProgramName = "#keeper" | "#json-thread" | "#sqlite-checkpoint" | "#sqlite-writer";

/** Whether this is part of the service's one file: docs/decisions/0036-bundle.md. */
const isBundled = import.meta.filename.endsWith("bundled.js");

/** The file to start. The one-file service starts the bundled copy beside it, which loads sooner. */
export function programFile(name: ProgramName): string {
  const file = createRequire(import.meta.url).resolve(name);
  return isBundled ? file.replace(/\.js$/, ".bundled.js") : file;
}
