// Makes one file of the service and its libraries, which starts in two thirds of the time. `npm start` and `npm test` make
// it after they compile; without it, or after a newer compilation, the service starts from its own files.
import { renameSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const dist = join(root, "packages/server/dist");

/** Where the bundle lies: beside the files that it is made of, so that what they find by their place is found by it. */
export const bundleFile = join(dist, "bundled.js");

export async function bundle() {
  const { build } = createRequire(join(root, "packages/worker/package.json"))("esbuild");
  const unfinished = `${bundleFile}.new`;
  await build({
    entryPoints: [join(dist, "assembly/service.js")],
    outfile: unfinished,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node22",
    logLevel: "error",
    // what is loaded only when it is needed, or finds files beside its own
    external: ["@millrace/worker", "dockerode", "@fastify/swagger-ui", "pg-native", "@opentelemetry/*"],
    banner: {
      js: [
        'import { createRequire as bundledRequire } from "node:module";',
        "const require = bundledRequire(import.meta.url);",
        "const { filename: __filename, dirname: __dirname } = import.meta;",
      ].join("\n"),
    },
  });
  renameSync(unfinished, bundleFile);
}

if (process.argv[1] === import.meta.filename) await bundle();
