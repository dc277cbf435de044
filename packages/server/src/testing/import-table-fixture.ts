import { builtinModules } from "node:module";
import { posix } from "node:path";

/** A row of the import table: `own` names modules and folders of the same package, `npm` names packages. */
export interface Rule {
  readonly who: RegExp;
  readonly own: readonly string[] | "everything";
  readonly npm: readonly string[];
  /** Every module except the domain may import `node:` modules. */
  readonly node?: false;
}

const contracts = ["store", "bell", "provider", "sender", "vault", "clock", "turns", "ids", "events"];
const hosts = ["host/inventory", "host/quota"];
const memory = ["memory", "lines", "rates", "json"];
/** Finds what runs in a thread or process of its own. */
const programs = "host/programs";
const operationsMay = ["domain", ...contracts, ...hosts, ...memory, "errors"];
const driver = ["domain", "clock", "turns", "ids", "errors"];
const edge = ["edges/shared", "operations", "domain", "errors", "clock", "turns", "ids", "events", "rates", "json"];

/** The table of docs/architecture.md; every module may also import `limits` and the modules of its own folder. */
export const serverRules: readonly Rule[] = [
  { who: /^limits(\/.+)?$/, own: [], npm: [] },
  { who: /^domain\//, own: ["domain"], npm: [], node: false },
  { who: /^errors$/, own: ["domain"], npm: [] },
  { who: /^settings$/, own: [], npm: ["typebox"] },
  { who: /^config$/, own: ["errors", "settings"], npm: ["typebox"] },
  { who: /^turns$/, own: ["clock"], npm: [] },
  { who: new RegExp(`^(${[...contracts, ...hosts].join("|")})(\\/.+)?$`), own: ["domain"], npm: [] },
  { who: /^host\/programs$/, own: [], npm: [] },
  { who: /^json\/.+$/, own: ["domain", ...contracts, programs], npm: [] },
  { who: /^(memory\/.+|lines\/.+|rates)$/, own: ["domain", ...contracts], npm: [] },
  { who: /^operations\//, own: [...operationsMay, "operations"], npm: [] },
  { who: /^loops\//, own: [...operationsMay, "operations", "loops"], npm: [] },
  { who: /^stores\/tables\//, own: [...driver, "store"], npm: ["kysely"] },
  {
    who: /^stores\/sqlite\//,
    own: [...driver, "store", "stores/tables", "stores/sqlite", programs],
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
  { who: /^providers\/process\//, own: [...driver, "provider", "providers/log-files", programs], npm: [] },
  // These choose the provider of each worker, or offer none.
  { who: /^providers\/(combined|no-containers)$/, own: [...driver, "provider", "providers/log-files"], npm: [] },
  // What registries say is the same, whoever pulls.
  { who: /^providers\/images\//, own: [...driver, "provider"], npm: [] },
  {
    who: /^providers\/docker\//,
    own: [...driver, "provider", "providers/log-files", "providers/images"],
    npm: ["dockerode"],
  },
  {
    who: /^providers\/kubernetes\//,
    own: [...driver, "provider", "providers/kubernetes", "providers/log-files", "providers/images"],
    npm: ["undici", "ws", "socks", "yaml", "kubernetes-types"],
  },
  // Logs that other servers keep.
  { who: /^providers\/other-servers\//, own: [...driver, "provider"], npm: ["undici"] },
  { who: /^host\/inventories\//, own: [...driver, "host/inventory"], npm: [] },
  { who: /^host\/quotas\//, own: [...driver, "host/quota"], npm: [] },
  { who: /^host\/data-directory$/, own: [], npm: [] },
  { who: /^senders\//, own: [...driver, "sender"], npm: ["undici", "ipaddr.js"] },
  { who: /^vaults\//, own: [...driver, "vault"], npm: [] },
  // Each edge is separate; all of them use the shared parts.
  { who: /^edges\/server$/, own: [...edge, "edges"], npm: ["fastify", "@fastify/", "typebox", "@millrace/api"] },
  { who: /^edges\/gateway\//, own: [...edge, "edges/gateway"], npm: ["fastify", "typebox", "@millrace/api", "undici"] },
  { who: /^edges\/graphql\//, own: edge, npm: ["fastify", "graphql", "typebox", "@millrace/api"] },
  { who: /^edges\/rest-v1\//, own: [...edge, "edges/rest-v1"], npm: ["fastify", "typebox", "@millrace/api"] },
  { who: /^edges\/.+\//, own: edge, npm: ["fastify", "@fastify/", "typebox", "@millrace/api"] },
  {
    who: /^telemetry\//,
    own: ["events", "domain", "turns"],
    npm: ["pino", "prom-client", "@opentelemetry/", "@millrace/api"],
  },
  { who: /^(about|host\/bundle)$/, own: [], npm: [] },
  { who: /^demo$/, own: [], npm: ["@millrace/api"] },
  { who: /^banner$/, own: ["assemble", "config"], npm: ["@millrace/api"] },
  // The parts of the assembly, which no other module may import.
  { who: /^(assemble|assembly\/.+)$/, own: "everything", npm: [] },
  { who: /^main$/, own: ["assembly/service", "host/bundle"], npm: [] },
];

/** The other packages: each is one layer. */
export const packageRules: Readonly<Record<string, readonly Rule[]>> = {
  api: [{ who: /./, own: "everything", npm: ["typebox"] }],
  worker: [
    { who: /^handler\/handler-build$/, own: "everything", npm: ["@millrace/api", "esbuild"] },
    { who: /./, own: "everything", npm: ["@millrace/api"] },
  ],
  server: serverRules,
  cli: [
    { who: /^output\/table$/, own: "everything", npm: ["cli-table3"] },
    {
      who: /^output\/terminal$/,
      own: "everything",
      npm: ["@clack/prompts", "@millrace/api/words", "cli-progress", "ora"],
    },
    { who: /^nouns\/resources$/, own: "everything", npm: ["fastest-levenshtein"] },
    { who: /^dev\/watch$/, own: "everything", npm: ["chokidar"] },
    { who: /^main$/, own: "everything", npm: ["@millrace/server"] },
    { who: /^commands\/serve$/, own: "everything", npm: ["@millrace/server", "commander"] },
    { who: /^completion$/, own: "everything", npm: ["@bomb.sh/tab", "commander"] },
    { who: /^commands\/top$/, own: "everything", npm: ["@millrace/api", "commander", "log-update"] },
    { who: /^deploy\/config$/, own: "everything", npm: ["typebox", "smol-toml", "yaml"] },
    { who: /^dev\/python$/, own: "everything", npm: ["smol-toml"] },
    { who: /./, own: "everything", npm: ["@millrace/api", "commander"] },
  ],
  dashboard: [
    { who: /^guide\//, own: "everything", npm: ["minisearch"] },
    { who: /^parts\/chart$/, own: "everything", npm: ["uplot", "react"] },
    { who: /./, own: "everything", npm: ["@millrace/api", "react", "react-dom", "@tanstack/", "@base-ui/react"] },
  ],
};

const builtins = new Set(builtinModules);

/** Whether a module or folder is a place, or in it. */
export const inside = (name: string, place: string) => name === place || name.startsWith(`${place}/`);

/** Why a module (its path without `.ts`) may not import `named`; undefined if it may. */
export function breach(rules: readonly Rule[], module: string, named: string): string | undefined {
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
