import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { BuildOptions, BuildResult, Loader, Plugin } from "esbuild";
import { type HandlerCache, textOfFile } from "./handler-cache.js";

const sourceKind = /\.([cm]?[jt]s|[jt]sx)$/;

/**
 * Turns a TypeScript handler and the files it imports into one module, kept in the cache, and returns its path.
 * Packages stay where they are, so that native code and files beside them work.
 */
export async function buildHandler(file: string, sdkUrl: string, cache: HandlerCache): Promise<string> {
  const esbuild = await import("esbuild");
  const packages = new Set<string>();
  const options = buildOptions(file, [ownPlace(), packagesInPlace(sdkUrl, packages)]);
  // esbuild works in a child process that would live as long as this worker.
  const result = await esbuild.build(options).finally(() => esbuild.stop());
  return cache.keep(withRequire(textOf(result), file), {
    files: filesOf(result, path.dirname(file)),
    packages: [...packages],
  });
}

function buildOptions(file: string, plugins: Plugin[]): BuildOptions {
  return {
    entryPoints: [file],
    absWorkingDir: path.dirname(file),
    bundle: true,
    write: false,
    metafile: true,
    platform: "node",
    format: "esm",
    target: `node${process.versions.node}`,
    sourcemap: "inline",
    sourcesContent: false,
    sourceRoot: pathToFileURL(`${path.dirname(file)}/`).href,
    keepNames: true,
    logLevel: "silent",
    define: {
      "import.meta.url": "__handlerUrl",
      "import.meta.filename": "__handlerFile",
      "import.meta.dirname": "__handlerDirectory",
    },
    plugins,
  };
}

/** Each file keeps its own `import.meta`, although it becomes part of one module elsewhere. */
function ownPlace(): Plugin {
  return {
    name: "own-place",
    setup(build) {
      build.onLoad({ filter: sourceKind }, async ({ path: file }) => {
        const source = await fs.promises.readFile(file, "utf8");
        if (!source.includes("import.meta")) return null;
        const place = [
          `const __handlerUrl = ${JSON.stringify(pathToFileURL(file).href)}`,
          `__handlerFile = ${JSON.stringify(file)}`,
          `__handlerDirectory = ${JSON.stringify(path.dirname(file))};`,
        ].join(", ");
        // On the first line, so that line numbers stay; a #! line would end up in its middle.
        const contents = place + (source.startsWith("#!") ? `//${source}` : source);
        return { contents, loader: loaderOf(file), resolveDir: path.dirname(file) };
      });
    },
  };
}

/** Packages are imported by their path on disk: the built module is elsewhere and would not find them. */
function packagesInPlace(sdkUrl: string, packages: Set<string>): Plugin {
  const inside = Symbol("asked by this plugin");
  return {
    name: "packages-in-place",
    setup(build) {
      build.onResolve({ filter: /^[^./]/ }, async ({ path: name, pluginData, importer, resolveDir, kind }) => {
        if (pluginData === inside || kind === "entry-point") return null;
        if (name === "@millrace/worker") return { path: sdkUrl, external: true };
        if (name.startsWith("node:") || name.startsWith("#")) return null;
        const found = await build.resolve(name, { importer, resolveDir, kind, pluginData: inside });
        // Not a package: a builtin, or an alias (tsconfig `paths`) for a file of the user's own.
        if (found.errors.length > 0 || found.external) return null;
        if (!found.path.includes(`${path.sep}node_modules${path.sep}`)) return null;
        packages.add(found.path);
        return { path: kind === "require-call" ? found.path : pathToFileURL(found.path).href, external: true };
      });
    },
  };
}

function textOf(result: BuildResult): string {
  return result.outputFiles?.[0]?.text ?? "";
}

/** CommonJS files among the user's own may call `require`, which a module doesn't have. */
function withRequire(text: string, file: string): string {
  if (!/\b__require\b/.test(text)) return text;
  const from = JSON.stringify(file);
  return `import { createRequire as __createRequire } from "node:module"; globalThis.require ??= __createRequire(${from});${text}`;
}

function filesOf(result: BuildResult, directory: string): Record<string, string | null> {
  const read = Object.keys(result.metafile?.inputs ?? {}).map((input) => path.resolve(directory, input));
  // Both change the result of a build, but are not listed as inputs.
  const settings = ["tsconfig.json", "package.json"].map((name) => path.join(directory, name));
  return Object.fromEntries([...read, ...settings].map((input) => [input, textOfFile(input)]));
}

function loaderOf(file: string): Loader {
  const extension = path.extname(file).slice(1);
  return extension.startsWith("c") || extension.startsWith("m")
    ? (extension.slice(1) as Loader)
    : (extension as Loader);
}
