import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { breach, inside, packageRules, serverRules } from "./testing/import-table-fixture.js";
import { files, importsOf, names, packages } from "./testing/sources-fixture.js";

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

describe("The import table", () => {
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
    ["main", "./assembly/service.js"],
    ["edges/server", "@fastify/swagger"],
    ["config", "typebox/value"],
  ])("lets %s import %s", (module, named) => {
    expect(breach(serverRules, module, named)).toBeUndefined();
  });
});
