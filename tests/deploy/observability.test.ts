import { spawnSync } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { metricTable } from "../../packages/server/src/telemetry/metric-table.js";
import { blocksOf } from "../docs/guide/blocks.js";
import { makeFolder } from "../e2e/handlers.js";
import { call, makeEndpoint, root, startServer, type TestServer } from "../harness.js";

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
}
interface RuleCase {
  readonly alertname: string;
  readonly exp_alerts: readonly unknown[];
}
interface Panel {
  readonly type: string;
  readonly targets?: readonly { expr: string }[];
}

const folder = join(root, "deploy/prometheus");
const read = (path: string) => readFileSync(join(root, "deploy", path), "utf8");
const rules: Rule[] = parse(read("prometheus/millrace.rules.yml")).groups.flatMap(
  ({ rules }: { rules: Rule[] }) => rules,
);
const alerts = rules.flatMap((rule) => (rule.alert === undefined ? [] : [{ ...rule, name: rule.alert }]));
const cases: RuleCase[] = parse(read("prometheus/millrace.rules.test.yml")).tests.flatMap(
  ({ alert_rule_test }: { alert_rule_test: RuleCase[] }) => alert_rule_test,
);
const board = JSON.parse(read("grafana/millrace.json"));
const panels = (board.panels as Panel[]).filter(({ type }) => type !== "row");
/** The board's queries, with values for its variables. */
const queries = panels.flatMap(({ targets = [] }) =>
  targets.map(({ expr }) =>
    expr.replaceAll("$__rate_interval", "1m").replaceAll("$job", "millrace").replaceAll("$endpoint", ".*"),
  ),
);
const expressions = [...rules.map(({ expr }) => expr), ...queries];

/** Runs promtool, and returns its exit code with all that it printed. */
function promtool(args: string[], input = "") {
  const { status, stdout, stderr } = spawnSync("promtool", args, { encoding: "utf8", cwd: folder, input });
  return { status, output: stdout + stderr };
}

/** The selectors of an expression: the metrics that it names, each with its matchers. */
function selectors(expr: string) {
  const plain = expr.replace(/\b(by|on|without|ignoring)\s*\([^)]*\)/g, " ");
  const found = plain.matchAll(/"[^"]*"|(?<![\w:.])([a-zA-Z_:][\w:]*)(?!\w*\s*\()(?:\{([^}]*)\})?/g);
  return [...found]
    .filter(([, name]) => name !== undefined && !/^(and|or|unless|by|on|offset|bool)$/.test(name))
    .map(([, name = "", inner = ""]) => ({
      name,
      matchers: [...inner.matchAll(/(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g)].map(
        ([, label = "", how = "", value = ""]) => ({
          label,
          how,
          value,
        }),
      ),
    }));
}

let server: TestServer;
/** The metrics of a server with an endpoint. */
let page: string;
beforeAll(async () => {
  server = await startServer();
  await makeEndpoint(server, join(root, "examples/hello"), { workersMax: 0 });
  // a route is on the page once it has served a request
  for (const path of ["/v2/none/status/job", "/lb/none/", "/readyz"]) await call(server, "GET", path);
  await call(server, "POST", "/v2/none/run", { input: {} });
  page = await (await fetch(`${server.url}/metrics`)).text();
});
afterAll(() => server?.end());

/** Every name that a sample of the server can have. */
function served(): Set<string> {
  const heads = [...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  return new Set(
    heads.flatMap(([, name, type]) =>
      type === "histogram" ? ["_bucket", "_sum", "_count"].map((end) => name + end) : [name as string],
    ),
  );
}

const ownOf = (name: string) =>
  Object.values(metricTable).find((metric) => name.replace(/_(bucket|sum|count)$/, "") === metric.name);

describe("/metrics", () => {
  it("is what promtool expects, apart from three gauges of prom-client", () => {
    const { output } = promtool(["check", "metrics"], page);
    const complaints = output.trim().split("\n");
    expect(complaints.filter((line) => !/^nodejs_active_(handles|requests|resources)_total /.test(line))).toEqual([]);
  });

  it("has all metrics of the reference page, with their help, and no others of ours", () => {
    const reference = readFileSync(join(root, "docs/reference/metrics.md"), "utf8");
    const rows = [...reference.matchAll(/^\| `(millrace_\w+)` \| \w+ \| .* \| (.+) \|$/gm)];
    const helps = [...page.matchAll(/^# HELP (millrace_\w+) (.+)$/gm)];
    expect(rows.length).toBeGreaterThan(5);
    expect(rows.map(([, name, help]) => [name, help])).toEqual(helps.map(([, name, help]) => [name, help]));
  });
});

describe("deploy/prometheus", () => {
  it("has a configuration that promtool accepts", (test) => {
    const own = makeFolder(test);
    const key = join(own, "millrace.key");
    writeFileSync(key, "mr_key");
    const config = read("prometheus/prometheus.yml");
    expect(config).toContain("credentials_file: /etc/prometheus/millrace.key");
    writeFileSync(join(own, "prometheus.yml"), config.replace("/etc/prometheus/millrace.key", key));
    copyFileSync(join(folder, "millrace.rules.yml"), join(own, "millrace.rules.yml"));
    const { status, output } = promtool(["check", "config", join(own, "prometheus.yml")]);
    expect(status, output).toBe(0);
    expect(output).toContain("1 rule files found");
  });

  it("has rules that promtool accepts, and that pass their tests", () => {
    for (const args of [
      ["check", "rules", "--lint-fatal", "millrace.rules.yml"],
      ["test", "rules", "millrace.rules.test.yml"],
    ]) {
      const { status, output } = promtool(args);
      expect(status, output).toBe(0);
    }
  });

  it.each(alerts)("tests that $name fires, and that it does not", ({ name }) => {
    const own = cases.filter(({ alertname }) => alertname === name);
    expect(own.some(({ exp_alerts }) => exp_alerts.length > 0)).toBe(true);
    expect(own.some(({ exp_alerts }) => exp_alerts.length === 0)).toBe(true);
  });

  it.each(alerts)("says how severe $name is, what it means, and what to do", ({ labels, annotations = {} }) => {
    expect(["critical", "warning"]).toContain(labels?.severity);
    expect(Object.keys(annotations).sort()).toEqual(["description", "summary"]);
    expect(annotations.description).toMatch(/^[A-Z0-9`].{80,}\.$/);
  });

  it("names only settings that exist", () => {
    const settings = readFileSync(join(root, "docs/reference/settings.md"), "utf8");
    const named = [...read("prometheus/millrace.rules.yml").matchAll(/MILLRACE_\w+/g)].map(([name]) => name);
    expect(named.length).toBeGreaterThan(0);
    for (const name of named) expect(settings).toContain(`\`${name}\``);
  });
});

it("docs/guide/observability.md: the commands that check the files succeed", () => {
  const [block] = blocksOf("observability").filter(({ words }) => words.test === "tests/deploy/observability.test.ts");
  const { status, stderr } = spawnSync("bash", ["-ec", block?.text ?? "false"], { cwd: root, encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
});

describe("deploy/grafana", () => {
  it("has queries that promtool can parse", (test) => {
    const file = join(makeFolder(test), "board.yml");
    const asRules = queries.map((expr, n) => ({ record: `board:query:${n}`, expr }));
    writeFileSync(file, JSON.stringify({ groups: [{ name: "board", rules: asRules }] }));
    const { status, output } = promtool(["check", "rules", file]);
    expect(status, output).toBe(0);
    expect(output).toContain(`${queries.length} rules found`);
    expect(queries.length).toBeGreaterThan(20);
  });

  it("takes its data source, its service and its endpoints from variables", () => {
    const variables = board.templating.list.map(({ name }: { name: string }) => name);
    expect(variables).toEqual(["datasource", "job", "endpoint"]);
    const sources = [...read("grafana/millrace.json").matchAll(/"uid": "([^"]*)"/g)].map(([, uid]) => uid);
    expect(new Set(sources)).toEqual(new Set([`\${datasource}`, "millrace"])); // the latter is the board's own
    expect(sources.filter((uid) => uid === "millrace")).toHaveLength(1);
    expect(queries.join()).not.toContain("$");
  });

  it("has panels that explain themselves and do not overlap", () => {
    const taken = new Set<string>();
    for (const { title, description, gridPos } of board.panels) {
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.has(`${x} ${y}`), title).toBe(false);
          taken.add(`${x} ${y}`);
        }
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      if (gridPos.h > 1) expect(description, title).toMatch(/\.$/);
    }
  });
});

describe("the rules and the board", () => {
  it("name only metrics that a server serves, and figures that a rule records", () => {
    const known = served().add("up");
    for (const { record } of rules) if (record !== undefined) known.add(record);
    const named = expressions.flatMap(selectors).map(({ name }) => name);
    expect(named.length).toBeGreaterThan(60);
    expect([...new Set(named)].filter((name) => !known.has(name))).toEqual([]);
  });

  it("use every metric of ours", () => {
    const named = new Set(expressions.flatMap(selectors).map(({ name }) => ownOf(name)?.name));
    for (const { name } of Object.values(metricTable)) expect([...named]).toContain(name);
  });

  it("match only labels that the metric has", () => {
    const wrong = expressions.flatMap(selectors).flatMap(({ name, matchers }) => {
      const labels: readonly string[] = ["job", "instance", ...(ownOf(name)?.labelNames ?? [])];
      return matchers.filter(({ label }) => !labels.includes(label)).map(({ label }) => `${name}: ${label}`);
    });
    expect(wrong).toEqual([]);
  });

  it("match only routes, states and outcomes that there are", () => {
    const values = (metric: string, label: string) =>
      metric === "millrace_workers"
        ? (metricTable.workers.help.match(/\w+/g) ?? [])
        : [...page.matchAll(new RegExp(`^${metric}\\{.*?\\b${label}="([^"]*)"`, "gm"))].map(([, value]) => value);
    for (const { name, matchers } of expressions.flatMap(selectors))
      for (const { label, how, value } of matchers) {
        if (!["route", "state", "outcome"].includes(label)) continue;
        const words = value.includes("(") || !how.includes("~") ? [value] : value.split("|");
        for (const word of words) {
          const matches = (each: string | undefined) =>
            how.includes("~") ? new RegExp(`^(${word})$`).test(each as string) : each === word;
          expect(values(name, label).some(matches), `${name}: ${word}`).toBe(true);
        }
      }
  });
});
