#!/usr/bin/env node
import nodeModule from "node:module";
import { join } from "node:path";

/**
 * The oldest Node.js that our libraries run on; in a clone, `npx millrace` brings a newer one. Older ones must load this
 * file to say so: import no name from `node:` that they lack.
 */
const oldestNode = [22, 19] as const;

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < oldestNode[0] || (major === oldestNode[0] && minor < oldestNode[1])) {
  process.stderr.write(`millrace needs Node.js ${oldestNode.join(".")} or newer; this is ${process.versions.node}.\n`);
  process.exit(1);
}
// before the rest is loaded, and not in a folder for temporary files, where others could put what we would run
nodeModule.enableCompileCache(join(import.meta.dirname, ".compile-cache"));
const here = (path: string): URL => new URL(path, import.meta.url);
const { readAbout } = await import("@millrace/server/about");
const { bundleOr } = await import("@millrace/server/bundle");
const compiled = [".tsbuildinfo", "../../api/dist/.tsbuildinfo"].map(here);
const { runCommandLine }: typeof import("./command-line.js") = await import(
  bundleOr(here("./command-line.js"), here("./bundled.js"), compiled)
);
await runCommandLine(readAbout(process.env.MILLRACE_COMMIT));
