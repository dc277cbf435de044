import { statSync } from "node:fs";
import nodeModule from "node:module";
import { join } from "node:path";

/**
 * The oldest Node.js that our libraries run on. `npm start` and the image bring a newer one. Older ones must load this
 * file to say so: import no name from `node:` that they lack.
 */
const oldestNode = [22, 19] as const;

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < oldestNode[0] || (major === oldestNode[0] && minor < oldestNode[1])) {
  process.stderr.write(
    `Millrace needs Node.js ${oldestNode.join(".")} or newer; this is ${process.versions.node}. \`npm start\` brings one along.\n`,
  );
  process.exit(1);
}
// not in a folder for temporary files, where others could put what we would run
nodeModule.enableCompileCache(join(import.meta.dirname, ".compile-cache"));

const writtenAt = (...path: string[]): number =>
  statSync(join(import.meta.dirname, ...path), { throwIfNoEntry: false })?.mtimeMs ?? 0;

// One file is loaded in much less time than two thousand (docs/decisions/0036-bundle.md); one that is older than what it
// was made of is left alone.
const compiledAt = Math.max(writtenAt(".tsbuildinfo"), writtenAt("../../api/dist/.tsbuildinfo"));
const bundle = "./bundled.js";
await import(writtenAt(bundle) > compiledAt ? bundle : "./assembly/service.js");
