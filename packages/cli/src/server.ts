import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Context, type Env, readContexts } from "./contexts.js";
import { exits, Failure } from "./exit.js";

/** A file in the data directory of a `millrace dev`, whose engine ends with it. */
export const devMark = "dev";

const usualUrl = "http://127.0.0.1:8000";

/** Where a server was found, for people. */
export interface Found extends Context {
  readonly from: string;
}

/**
 * The server to speak to: the environment decides, then the context, then a data directory here or in a folder above. A
 * key in the environment alone is for the current context's server.
 * `named`: the context of `--context`, which goes before all others. `isToStay`: what is done there is to outlive a
 * `millrace dev`, so that its engine does not count.
 */
export function findServer(env: Env, folder: string, named?: string, { isToStay = false } = {}): Found {
  const { current, contexts } = readContexts(env);
  if (named !== undefined) return ofContext(contexts, named);
  const { MILLRACE_URL: url, MILLRACE_API_KEY: key } = env;
  if (url && !URL.canParse(url))
    throw new Failure(exits.usage, `MILLRACE_URL is "${url}", which is not an address.`, `MILLRACE_URL=${usualUrl}`);
  const context = current === undefined ? undefined : ofContext(contexts, current);
  if (key) return { url: url || (context?.url ?? urlOf(env)), key, from: "MILLRACE_API_KEY" };
  if (context && !url) return context;
  const kept = keptAbove(env, folder, isToStay);
  if (kept) return { ...kept, url: url || (kept.url ?? urlOf(env)) };
  throw new Failure(
    exits.usage,
    "No server is known here: there is no MILLRACE_API_KEY, no context, and no .millrace folder of a server.",
    "millrace context add NAME --url URL",
  );
}

function ofContext(contexts: Readonly<Record<string, Context>>, name: string): Found {
  const context = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (context) return { ...context, from: `context ${name}` };
  throw new Failure(exits.usage, `There is no context "${name}".`, "millrace context list");
}

const urlOf = (env: Env): string => (env.MILLRACE_PORT ? `http://127.0.0.1:${env.MILLRACE_PORT}` : usualUrl);

/** The bootstrap key in a server's data directory, and the address that it last served at. */
function keptAbove(
  env: Env,
  folder: string,
  isToStay: boolean,
): { key: string; url: string | undefined; from: string } | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const kept = env.MILLRACE_DATA_DIR || join(at, ".millrace");
    const [key, url] = [textOf(join(kept, "api-key")), textOf(join(kept, "url"))];
    const isOfDev = existsSync(join(kept, devMark));
    const counts = !isOfDev || (url !== undefined && !isToStay);
    if (key !== undefined && counts) return { key, url, from: join(kept, "api-key") };
    if (env.MILLRACE_DATA_DIR || at === dirname(at)) return undefined;
  }
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return undefined;
  }
}
