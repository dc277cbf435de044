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

const here = (path: string): URL => new URL(path, import.meta.url);
const { bundleOr } = await import("./host/bundle.js");
const compiled = [".tsbuildinfo", "../../api/dist/.tsbuildinfo"].map(here);
await import(bundleOr(here("./assembly/service.js"), here("./bundled.js"), compiled));
