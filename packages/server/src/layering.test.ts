import { existsSync, readdirSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join, posix } from "node:path";
import { describe, expect, it } from "vitest";

/** A row of the import table: `own` names modules and folders of the same package, `npm` names packages. */
interface Rule {
  readonly who: RegExp;
  readonly own: readonly string[] | "everything";
  readonly npm: readonly string[];
  /** Every module except the domain may import `node:` modules. */
  readonly node?: false;
}

const contracts = ["store", "bell", "provider", "sender", "vault", "clock", "turns", "ids", "events"];
const hosts = ["host/inventory", "host/quota"];
const memory = ["memory", "lines", "rates", "json"];
const operationsMay = ["domain", ...contracts, ...hosts, ...memory, "errors"];
const driver = ["domain", "clock", "turns", "ids", "errors"];
const edge = ["edges/shared", "operations", "domain", "errors", "clock", "turns", "ids", "events", "rates", "json"];

/** The table of docs/architecture.md; every module may also import `limits` and the modules of its own folder. */
const serverRules: readonly Rule[] = [
  { who: /^limits(\/.+)?$/, own: [], npm: [] },
  { who: /^domain\//, own: ["domain"], npm: [], node: false },
  { who: /^errors$/, own: ["domain"], npm: [] },
  { who: /^settings$/, own: [], npm: ["typebox"] },
  { who: /^config$/, own: ["errors", "settings"], npm: ["typebox"] },
  { who: /^turns$/, own: ["clock"], npm: [] },
  { who: new RegExp(`^(${[...contracts, ...hosts].join("|")})(\\/.+)?$`), own: ["domain"], npm: [] },
  { who: /^(memory\/.+|lines\/.+|rates|json\/.+)$/, own: ["domain", ...contracts], npm: [] },
  { who: /^operations\//, own: [...operationsMay, "operations"], npm: [] },
  { who: /^loops\//, own: [...operationsMay, "operations", "loops"], npm: [] },
  { who: /^stores\/tables\//, own: [...driver, "store"], npm: ["kysely"] },
  {
    who: /^stores\/sqlite\//,
    own: [...driver, "store", "stores/tables", "stores/sqlite"],
    npm: ["kysely"],
  },
  {
    who: /^stores\/postgres\//,
    own: [...driver, "store", "stores/tables", "stores/postgres"],
    npm: ["kysely", "pg"],
  },
  { who: /^bells\//, own: [...driver, "bell"], npm: ["pg"] },
  // The keeper is a separate process: it must start fast, and keep running without the server.
  {
    who: /^providers\/process\/(away|keeper|process-table|sweep|worker-log)$/,
    own: [
      "clock",
      "domain/workers/log-line",
      "domain/workers/worker",
      "providers/process/away",
      "providers/process/process-table",
      "providers/process/sweep",
      "providers/process/worker-log",
      "providers/log-files",
    ],
    npm: [],
  },
  { who: /^providers\/log-files\/(log-file|stored-line)$/, own: ["domain/workers/log-line"], npm: [] },
  // Workers of every provider write the same log files.
  { who: /^providers\/log-files\//, own: [...driver, "provider"], npm: [] },
  { who: /^providers\/process\//, own: [...driver, "provider", "providers/log-files"], npm: [] },
  // These choose the provider of each worker, or offer none.
  { who: /^providers\/(combined|no-containers)$/, own: [...driver, "provider", "providers/log-files"], npm: [] },
  { who: /^providers\/docker\//, own: [...driver, "provider", "providers/log-files"], npm: ["dockerode"] },
  { who: /^host\/inventories\//, own: [...driver, "host/inventory"], npm: [] },
  { who: /^host\/quotas\//, own: [...driver, "host/quota"], npm: [] },
  { who: /^host\/data-directory$/, own: [], npm: [] },
  { who: /^senders\//, own: [...driver, "sender"], npm: ["undici", "ipaddr.js"] },
  { who: /^vaults\//, own: [...driver, "vault"], npm: [] },
  // Each edge is separate; all of them use the shared parts.
  { who: /^edges\/server$/, own: [...edge, "edges"], npm: ["fastify", "@fastify/", "typebox", "@millrace/api"] },
  { who: /^edges\/gateway\//, own: [...edge, "edges/gateway"], npm: ["fastify", "typebox", "@millrace/api", "undici"] },
  { who: /^edges\/graphql\//, own: edge, npm: ["fastify", "graphql", "typebox", "@millrace/api"] },
  { who: /^edges\/.+\//, own: edge, npm: ["fastify", "@fastify/", "typebox", "@millrace/api"] },
  { who: /^telemetry\//, own: ["events", "domain", "turns"], npm: ["pino", "prom-client"] },
  { who: /^demo$/, own: [], npm: ["@millrace/api"] },
  { who: /^banner$/, own: ["assemble", "config"], npm: ["@millrace/api"] },
  // The parts of the assembly, which no other module may import.
  { who: /^(assemble|assembly\/.+)$/, own: "everything", npm: [] },
  // The listener opens before the rest is loaded.
  { who: /^main$/, own: ["assemble", "config", "edges/shared/connections/door", "demo", "banner"], npm: [] },
];

/** The other packages: each is one layer. */
const packageRules: Readonly<Record<string, readonly Rule[]>> = {
  api: [{ who: /./, own: "everything", npm: ["typebox"] }],
  worker: [
    { who: /^handler\/handler-build$/, own: "everything", npm: ["@millrace/api", "esbuild"] },
    { who: /./, own: "everything", npm: ["@millrace/api"] },
  ],
  server: serverRules,
};

const forTests =
  /(\.test\.tsx?|(^|\/)contract\.ts|\/(stores|providers)\/contracts\/.+\.ts|(^|\/)stub-server\.ts|-fixture\.ts)$/;
const builtins = new Set(builtinModules);

const withoutComments = (source: string) => source.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");

/** The specifiers in a file: static and dynamic imports, re-exports, and `require`. */
function importsOf(source: string): string[] {
  const code = withoutComments(source);
  const forms = [
    /^\s*(?:import|export)\s+(?:type\s+)?(?:[\w*{][^;"'`]*?\s)?from\s*["']([^"']+)["']/gm,
    /^\s*import\s*["']([^"']+)["']/gm,
    /\bimport\(\s*["']([^"']+)["']\s*\)/g,
    /\brequire\(\s*["']([^"']+)["']\s*\)/g,
  ];
  return forms.flatMap((form) => [...code.matchAll(form)].map((found) => found[1] as string));
}

const inside = (name: string, place: string) => name === place || name.startsWith(`${place}/`);

/** Why a module (its path without `.ts`) may not import `named`; undefined if it may. */
function breach(rules: readonly Rule[], module: string, named: string): string | undefined {
  const rule = rules.find(({ who }) => who.test(module));
  if (!rule) return "no row of the import table covers this file";
  if (named.startsWith(".")) return ownBreach(rule, module, posix.join(posix.dirname(module), named));
  if (named.startsWith("node:") || builtins.has(named)) {
    return rule.node === false ? "the domain may import no node: module" : undefined;
  }
  const npm = rule.npm.some((name) => (name.endsWith("/") ? named.startsWith(name) : inside(named, name)));
  return npm ? undefined : `its packages are: ${rule.npm.join(", ") || "none"}`;
}

function ownBreach(rule: Rule, module: string, target: string): string | undefined {
  const name = target.replace(/\.(js|jsx|json)$/, "");
  if (name.startsWith("..")) return "it reaches into another package by a path";
  if (rule.own === "everything" || inside(name, "limits")) return undefined;
  const folder = posix.dirname(module);
  const isKeepers = /^providers\/process\/(away|keeper|process-table|sweep|worker-log)$/.test(module);
  const beside = folder !== "." && inside(name, folder) && !isKeepers;
  if (beside || rule.own.some((place) => inside(name, place))) return undefined;
  return `its own modules are: limits${rule.own.map((place) => `, ${place}`).join("")}`;
}

const packages = join(import.meta.dirname, "../..");
const names = readdirSync(packages).filter((name) => existsSync(join(packages, name, "package.json")));
const files = names
  .flatMap((name) =>
    readdirSync(join(packages, name, "src"), { recursive: true, encoding: "utf8" }).map(
      (path) => `${name}/src/${path}`,
    ),
  )
  .filter((file) => /\.tsx?$/.test(file) && !forTests.test(file))
  .sort();

function breachesOf(file: string): string[] {
  const [name = "", , ...path] = file.split("/");
  const module = path.join("/").replace(/\.tsx?$/, "");
  return importsOf(readFileSync(join(packages, file), "utf8")).flatMap((named) => {
    const why = breach(packageRules[name] ?? [], module, named);
    return why === undefined ? [] : [`packages/${file} imports "${named}": ${why}`];
  });
}

describe("Each layer imports only what the table of the architecture allows it", () => {
  const layers = new Set(files.map((file) => file.replace(/(\/src\/[^/]+).*/, "$1")));
  it.each([...layers])("%s", (layer) => {
    const own = files.filter((file) => inside(file, layer));
    expect(own.flatMap(breachesOf)).toEqual([]);
  });
});

/** What each module imports from its own package, types included. */
const graph = new Map(
  files.map((file) => {
    const own = importsOf(readFileSync(join(packages, file), "utf8")).filter((named) => named.startsWith("."));
    return [file, own.map((named) => posix.join(posix.dirname(file), named).replace(/\.js$/, ".ts"))] as const;
  }),
);

/** The modules on a path from one back to itself; undefined if there is none. */
function cycleFrom(start: string): string[] | undefined {
  const before = new Map<string, string>();
  const left = [start];
  for (let file = left.pop(); file !== undefined; file = left.pop()) {
    for (const next of graph.get(file) ?? []) {
      if (next === start) {
        const way = [file];
        while (way[0] !== start) way.unshift(before.get(way[0] as string) as string);
        return way;
      }
      if (!before.has(next)) left.push(next);
      if (!before.has(next)) before.set(next, file);
    }
  }
  return undefined;
}

describe("The tree", () => {
  it("has a file for every row of the import table", () => {
    const modules = (name: string) =>
      files
        .filter((file) => inside(file, name))
        .map((file) => file.slice(`${name}/src/`.length).replace(/\.tsx?$/, ""));
    const empty = Object.entries(packageRules).flatMap(([name, rules]) =>
      rules.filter(({ who }) => !modules(name).some((module) => who.test(module))).map(({ who }) => `${name}: ${who}`),
    );
    expect(empty).toEqual([]);
  });

  it("has no import cycles, types included", () => {
    const cycles = [...graph.keys()].map(cycleFrom).filter((cycle) => cycle !== undefined);
    expect(cycles).toEqual([]);
  });

  it("has no folder with thirty files or more", () => {
    const folders = new Map<string, number>();
    for (const file of files) folders.set(posix.dirname(file), (folders.get(posix.dirname(file)) ?? 0) + 1);
    expect([...folders].filter(([, count]) => count >= 30)).toEqual([]);
  });

  it("has no file of more than 300 lines", () => {
    const lines = (file: string) => readFileSync(join(packages, file), "utf8").split("\n").length - 1;
    const long = files.filter((file) => lines(file) > 300).map((file) => file.replace("server/src/", ""));
    expect(long).toEqual([]);
  });
});

/** Calls that read the time or wait for it; methods such as a socket's `setTimeout` do not count. */
const timeSource =
  /(?<![\w.])(?:globalThis\.)?(?:set|clear)(?:Timeout|Interval)\b|\bperformance\b|\bhrtime\b|\bDate\.now\b|\bnew Date\(\)|\bAbortSignal\.timeout\b|import (?:\* as )?\w+ from "node:timers.*?"/g;
const timeSourcesOf = (source: string) => withoutComments(source).match(timeSource) ?? [];

describe("Time", () => {
  it("comes from clock.ts alone", () => {
    const others = files.filter((file) => inside(file, "server/src") && file !== "server/src/clock.ts");
    const found = others.flatMap((file) =>
      timeSourcesOf(readFileSync(join(packages, file), "utf8")).map((name) => `packages/${file}: ${name}`),
    );
    expect(found).toEqual([]);
  });

  it.each([
    "setTimeout(end, 5)",
    "globalThis.setInterval(look, 5)",
    'import { setTimeout as pause } from "node:timers/promises";',
    'import * as timers from "node:timers";',
    'import timers from "node:timers/promises";',
    "const at = performance.now();",
    "clock.read(Date.now)",
    "new Date().toISOString()",
    "AbortSignal.timeout(5)",
    "process.hrtime.bigint()",
  ])("is found in %s", (source) => {
    expect(timeSourcesOf(source)).toHaveLength(1);
  });

  it.each([
    "socket.setTimeout(0)",
    "new Date(row.at)",
    "// setTimeout(end)",
    'import { setImmediate } from "node:timers";',
  ])("is not found in %s", (source) => {
    expect(timeSourcesOf(source)).toEqual([]);
  });
});

describe("The check itself", () => {
  it("sees the sources of every package", () => {
    expect(new Set(files.map((file) => file.split("/")[0]))).toEqual(new Set(names));
    expect(files.length).toBeGreaterThan(100);
  });

  it("finds every form of import", () => {
    const source = `import "a";
import b, { type B } from "b";
import type {
  C,
} from "c";
export * from "d";
export type { E } from "e";
const f = await import("f"), g = require("g");
// import "not";
/* export * from "not" */`;
    expect(importsOf(source).sort()).toEqual(["a", "b", "c", "d", "e", "f", "g"]);
  });

  it.each([
    ["domain/jobs/job", "node:fs", "the domain may import no node: module"],
    ["domain/jobs/job", "../../clock.js", "its own modules are: limits"],
    ["operations/jobs/take-jobs", "../../stores/sqlite/open.js", "its own modules are"],
    ["operations/jobs/take-jobs", "../../edges/shared/replies/replies.js", "its own modules are"],
    ["stores/sqlite/jobs/jobs", "../../postgres/jobs/jobs.js", "its own modules are"],
    ["stores/sqlite/jobs/jobs", "fastify", "its packages are: kysely"],
    [
      "providers/process/keeper",
      "./keeper-client.js",
      "its own modules are: limits, clock, domain/workers/log-line, domain/workers/worker, providers/process/away, providers/process/process-table, providers/process/sweep, providers/process/worker-log, providers/log-files",
    ],
    ["edges/queue/routes", "../../stores/sqlite/open.js", "its own modules are"],
    ["edges/queue/routes", "undici", "its packages are"],
    ["edges/queue/routes", "../rest-v1/routes.js", "its own modules are"],
    ["main", "./memory/registry.js", "its own modules are"],
    ["somewhere/new", "../limits.js", "no row of the import table covers this file"],
    ["limits", "../../api/src/index.js", "it reaches into another package by a path"],
  ])("refuses that %s imports %s", (module, named, why) => {
    expect(breach(serverRules, module, named)).toContain(why);
  });

  it.each([
    ["domain/scaling/scaling", "../endpoints/endpoint.js"],
    ["domain/scaling/scaling", "../../limits.js"],
    ["edges/gateway/forward", "undici"],
    ["stores/sqlite/open", "../tables/open.js"],
    ["providers/process/keeper", "./worker-log.js"],
    ["main", "./edges/shared/connections/door.js"],
    ["edges/server", "@fastify/swagger"],
    ["config", "typebox/value"],
  ])("lets %s import %s", (module, named) => {
    expect(breach(serverRules, module, named)).toBeUndefined();
  });
});
