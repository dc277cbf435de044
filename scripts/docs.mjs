// `npm run docs`: writes docs/reference/ from the code, and builds the guide; with --check it writes nothing and fails if the pages differ.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { graphqlPage, restPage } from "./docs/api-pages.mjs";
import { compatibilityPage } from "./docs/compatibility.mjs";
import { buildGuide } from "./docs/guide.mjs";
import { Shapes } from "./docs/shapes.mjs";
import { build, installPackages, main, root } from "./set-up.mjs";

const reference = join(root, "docs/reference");

/** What a running service serves: its OpenAPI documents, and the page of its metrics. */
async function servedPages() {
  const { assemble } = await import(join(root, "packages/server/dist/assemble.js"));
  const { readConfig } = await import(join(root, "packages/server/dist/config.js"));
  const dataDir = mkdtempSync(join(tmpdir(), "millrace-docs-"));
  const config = readConfig({ MILLRACE_DATA_DIR: dataDir, MILLRACE_PORT: "0", MILLRACE_LOG_LEVEL: "silent" });
  const service = await assemble(config);
  try {
    const read = async (path) => JSON.stringify(await (await fetch(service.url + path)).json(), null, 2);
    return {
      "v1.openapi.json": `${await read("/v1/openapi.json")}\n`,
      "v2.openapi.json": `${await read("/v2/openapi.json")}\n`,
      "metrics.md": await metricsPage(await (await fetch(`${service.url}/metrics`)).text()),
    };
  } finally {
    await service.stop("docs");
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Every metric of ours that a running service serves, with its type, its labels and its help. */
async function metricsPage(served) {
  const { metricTable } = await import(join(root, "packages/server/dist/telemetry/metric-table.js"));
  const labels = new Map(Object.values(metricTable).map(({ name, labelNames }) => [name, labelNames]));
  const rows = [...served.matchAll(/^# HELP (millrace_\w+) (.+)\n# TYPE \S+ (\w+)$/gm)].map(([, name, help, type]) => {
    const named = labels.get(name).map((label) => `\`${label}\``);
    return `| \`${name}\` | ${type} | ${named.join(", ")} | ${help} |`;
  });
  return `# Metrics\n\n\`GET /metrics\` serves these in Prometheus' text format: without a key to callers on the server's own machine, and with an admin's key to others. Besides them it has the usual \`process_*\` and \`nodejs_*\` metrics of [prom-client](https://github.com/siimon/prom-client). Times are in seconds; a histogram is served as \`_bucket\`, \`_sum\` and \`_count\`.\n\n| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n${rows.join("\n")}\n`;
}

/** Every setting with its default and its one-sentence description. */
async function settingsPage() {
  const { settings } = await import(join(root, "packages/server/dist/settings.js"));
  const rows = Object.entries(settings.properties).map(([name, schema]) => {
    const words = schema.anyOf?.map((each) => each.const).join(", ");
    const fallback = schema.default === undefined ? "" : `\`${schema.default}\``;
    return `| \`${name}\` | ${fallback} | ${schema.description}${words ? ` One of ${words}.` : ""} |`;
  });
  return `# Settings\n\nEnvironment variables, read once at the start; all mistakes are reported together.\n\n| setting | default | what it does |\n| --- | --- | --- |\n${rows.join("\n")}\n`;
}

/** Every refusal with its HTTP status. */
async function errorsPage() {
  const { refusals } = await import(join(root, "packages/api/dist/index.js"));
  const rows = Object.entries(refusals).map(
    ([code, { status, retryable }]) => `| \`${code}\` | ${status} | ${retryable ? "yes" : "no"} |`,
  );
  return `# Error codes\n\nThe body of every error: \`{"error": "a sentence", "code": "A_CODE", "requestId": "…"}\`. REST v2 sends RFC 9457's form with the same \`code\` and \`requestId\`.\n\n| code | HTTP status | may the same call succeed later |\n| --- | --- | --- |\n${rows.join("\n")}\n`;
}

/** The schema of the file that `millrace deploy` reads, for editors. */
async function deploySchema() {
  const { DeployConfig } = await import(join(root, "packages/cli/dist/deploy/config.js"));
  return `${JSON.stringify({ $schema: "https://json-schema.org/draft/2020-12/schema", ...DeployConfig }, undefined, 2)}\n`;
}

/** Every command's help, and the shapes of the replies that commands print. */
async function commandsPage(documents) {
  const { describeCommands } = await import(join(root, "packages/cli/dist/program.js"));
  const [program, ...commands] = describeCommands();
  const shapes = new Shapes(documents);
  const part = ({ name, help }) => {
    const note = /^With --json: [\s\S]*?\.$/m.exec(help)?.[0] ?? "";
    const replies = [...note.replaceAll("\n", " ").matchAll(/(GET|POST|PUT|PATCH) (\/\S+)/g)];
    const links = replies.map(([, method, path]) => shapes.linkTo(method, path));
    const seen = links.length === 0 ? "" : `\nThe shape: ${links.join(", ")}\n`;
    return `## ${name}\n\n\`\`\`text\n${help.trim()}\n\`\`\`\n${seen}`;
  };
  const parts = commands.map(part);
  return `# The command line\n\nIn a clone it is called \`npx millrace\`. A name stands for an id wherever a command asks for one, also in fields such as \`templateId\`.\n\n\`\`\`text\n${program.help.trim()}\n\`\`\`\n\n${parts.join("\n")}\n## What --json prints\n\nA \`?\` marks what may be absent.\n\n${shapes.page()}`;
}

/** The schema after all migrations. */
async function schemaDump() {
  const { openDatabase } = await import(join(root, "packages/server/dist/stores/sqlite/driver.js"));
  const { migrate } = await import(join(root, "packages/server/dist/stores/sqlite/migrate.js"));
  const db = openDatabase(":memory:");
  migrate(db);
  const rows = db.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").all();
  db.close();
  return `${rows.map((row) => `${row.sql};`).join("\n\n")}\n`;
}

const read = (name) => {
  try {
    return readFileSync(join(reference, name), "utf8");
  } catch {
    return undefined;
  }
};

await main(async () => {
  const isCheck = process.argv.includes("--check");
  await installPackages();
  await build();
  const served = await servedPages();
  const documents = ["v1", "v2"].map((version) => JSON.parse(served[`${version}.openapi.json`]));
  const pages = {
    ...served,
    "settings.md": await settingsPage(),
    "errors.md": await errorsPage(),
    "compatibility.md": await compatibilityPage(),
    "schema.sql": await schemaDump(),
    "millrace.schema.json": await deploySchema(),
    "commands.md": await commandsPage(documents),
    "rest.md": restPage(documents),
    "graphql.md": await graphqlPage(),
  };
  const differing = Object.entries(pages).filter(([name, text]) => read(name) !== text);
  if (!isCheck) {
    mkdirSync(reference, { recursive: true });
    for (const [name, text] of differing) writeFileSync(join(reference, name), text);
    await buildGuide();
  }
  for (const [name] of differing)
    console.log(`docs/reference/${name} ${isCheck ? "differs: run npm run docs" : "written"}`);
  return isCheck && differing.length > 0 ? 1 : 0;
});
