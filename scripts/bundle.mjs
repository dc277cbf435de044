// Makes one file of the service and its libraries, one of each program that it starts, and one of the command line: they
// start in half the time. `npm start` and `npm test` make them after they compile; without them, or after a newer
// compilation, each starts from its own files.
import { readFileSync, renameSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const dist = join(root, "packages/server/dist");
const commandDist = join(root, "packages/cli/dist");

/** Where the bundles lie: beside the files that they are made of, so that what these find by their place is found. */
const bundleFile = join(dist, "bundled.js");
const commandBundle = join(commandDist, "bundled.js");

/** What the service starts in threads and processes of their own, as `imports` in its package.json name them. */
const programs = Object.values(JSON.parse(readFileSync(join(dist, "../package.json"), "utf8")).imports).map((path) =>
  join(dist, "..", path),
);
const bundledOf = (file) => file.replace(/\.js$/, ".bundled.js");

/** All files that {@link bundle} makes. */
export const bundleFiles = [bundleFile, commandBundle, ...programs.map(bundledOf)];

export async function bundle() {
  const { build } = createRequire(join(root, "packages/worker/package.json"))("esbuild");
  const bundled = async (from, to) => {
    await build({ ...options, entryPoints: [from], outfile: `${to}.new` });
    renameSync(`${to}.new`, to);
  };
  await Promise.all([
    bundled(join(commandDist, "command-line.js"), commandBundle),
    ...programs.map((file) => bundled(file, bundledOf(file))),
  ]);
  // last: a server that finds this file finds the others
  await bundled(join(dist, "assembly/service.js"), bundleFile);
}

const options = {
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node22",
  logLevel: "error",
  // what is loaded only when it is needed, or finds files beside its own
  external: [
    "@millrace/worker",
    "@millrace/server",
    "dockerode",
    "@fastify/swagger-ui",
    "pg-native",
    "@opentelemetry/*",
  ],
  banner: {
    js: [
      'import { createRequire as bundledRequire } from "node:module";',
      "const require = bundledRequire(import.meta.url);",
      "const { filename: __filename, dirname: __dirname } = import.meta;",
    ].join("\n"),
  },
};

if (process.argv[1] === import.meta.filename) await bundle();
