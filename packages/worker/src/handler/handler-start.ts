import { spawnSync } from "node:child_process";
import fs from "node:fs";
import module from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { Connection } from "../connection.js";
import { readableError } from "../json.js";
import { hasServed, serve } from "../serve.js";
import { readSettings, withParameters } from "../settings.js";
import { version } from "../version.js";
import type { Handler, ServeOptions } from "./handler.js";
import { HandlerCache } from "./handler-cache.js";

const names = ["handler.ts", "handler.js", "handler.mjs"];
const sdkUrl = new URL("../index.js", import.meta.url).href;
const lastWordsMaxMs = 3_000;
const reasonMaxLength = 1_000;
const checkMaxMs = 3_000;

interface HandlerModule {
  readonly handler: Handler | undefined;
  readonly options: ServeOptions | undefined;
}

/** Starts the handler found at a path; resolves if its module serves by itself, and otherwise ends the process. */
export async function startHandler(location: string): Promise<void> {
  const file = findHandler(path.resolve(location));
  if (file === undefined)
    return giveUp(`No handler found at ${location}: it needs ${names.join(", ")} or the path of one.`);
  let found: HandlerModule;
  try {
    found = await load(file);
  } catch (error) {
    return giveUp(`${file} could not be loaded: ${loadError(error, file)}`);
  }
  // A module that calls serve() itself is already working.
  if (hasServed()) return;
  if (!found.handler) return giveUp(`${file} has no handler: export a function as its default.`);
  await serve(found.handler, found.options);
  process.exit();
}

function findHandler(location: string): string | undefined {
  const stats = fs.statSync(location, { throwIfNoEntry: false });
  if (!stats?.isDirectory()) return stats && fs.realpathSync(location);
  const name = names.find((name) => fs.existsSync(path.join(location, name)));
  return name && path.join(fs.realpathSync(location), name);
}

async function load(file: string): Promise<HandlerModule> {
  if (/\.[cm]?tsx?$/.test(file)) {
    process.setSourceMapsEnabled(true);
    return exportsOf(await import(pathToFileURL(await built(file)).href));
  }
  resolveOwnPackage(file);
  return exportsOf(await import(pathToFileURL(file).href));
}

/** A second start with the same files needs no build, and does not even load the builder. */
async function built(file: string): Promise<string> {
  const cache = new HandlerCache(file, `${version} ${sdkUrl}`);
  const found = cache.find();
  if (found !== undefined) return found;
  const { buildHandler } = await import("./handler-build.js");
  return buildHandler(file, sdkUrl, cache);
}

/** CommonJS modules are imported as their default; compiled ones have their own default inside it. */
function exportsOf(loaded: { default?: unknown; options?: unknown }): HandlerModule {
  const inner = loaded.default as { default?: unknown; options?: unknown } | undefined;
  const isWrapped = typeof inner === "object" && inner !== null;
  const handler = isWrapped ? inner.default : loaded.default;
  const options = loaded.options ?? (isWrapped ? inner.options : undefined);
  return {
    handler: typeof handler === "function" ? (handler as Handler) : undefined,
    options: options as ServeOptions | undefined,
  };
}

/** Makes `@millrace/worker` resolve to this copy in plain JavaScript, wherever the file is. */
function resolveOwnPackage(file: string): void {
  type Next = (specifier: string, context: unknown) => unknown;
  const { registerHooks } = module as unknown as { registerHooks?: (hooks: object) => void };
  if (registerHooks) {
    const resolve = (specifier: string, context: unknown, next: Next) =>
      specifier === "@millrace/worker" ? { url: sdkUrl, shortCircuit: true } : next(specifier, context);
    registerHooks({ resolve });
    return;
  }
  // Before Node 22.15 hooks cost a thread (about 20 ms): only for a file that may import ours.
  if (!/@millrace\/worker|["']\.\.?\//.test(fs.readFileSync(file, "utf8"))) return;
  const hooks = `export const resolve = (specifier, context, next) => specifier === "@millrace/worker"
    ? { url: ${JSON.stringify(sdkUrl)}, shortCircuit: true } : next(specifier, context);`;
  module.register(`data:text/javascript,${encodeURIComponent(hooks)}`);
}

/** The compiler's own messages if there are any, because they name file and line. */
function loadError(error: unknown, file: string): string {
  const { errors } = (error ?? {}) as {
    errors?: Array<{ text: string; location?: { file: string; line: number; column: number } | null }>;
  };
  if (!Array.isArray(errors) || typeof errors[0]?.text !== "string")
    return (error instanceof SyntaxError ? placeOf(file) : undefined) ?? readableError(error);
  return errors
    .map(({ text, location }) => (location ? `${location.file}:${location.line}:${location.column}: ${text}` : text))
    .join("\n");
}

/** Where a file's syntax is wrong, with the line itself: the error of an import does not say it. */
function placeOf(file: string): string | undefined {
  const { status, stderr } = spawnSync(process.execPath, ["--check", file], { encoding: "utf8", timeout: checkMaxMs });
  const found = /^(.+:\d+)\n([\s\S]*?)\n(SyntaxError: .*)$/m.exec(stderr ?? "");
  if (status !== 1 || !found) return undefined;
  const [, place, source = "", words] = found;
  return [place, ...source.split("\n").filter((line) => line.trim() !== ""), words].join("\n");
}

/** Reports the error in the log and to the server, and exits. */
async function giveUp(reason: string): Promise<void> {
  process.stderr.write(`${reason}\n`);
  const { pingUrl, apiKey } = readSettings(process.env);
  if (pingUrl) {
    const words = { status: "unhealthy", check: "handler", reason: reason.slice(0, reasonMaxLength) };
    await new Connection(apiKey).call("GET", withParameters(pingUrl, words), { silenceMaxMs: lastWordsMaxMs });
  }
  process.exit(1);
}
