import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "../set-up.mjs";

/** What each call of a public client does here, and what differs on purpose, from the tables that the tests check. */
export async function compatibilityPage() {
  const tables = await clientTables();
  const parts = [
    "# Compatibility, call by call",
    "Each call is made by the stock client, unchanged, in `tests/compat`, unless a table says otherwise. What differs from the hosted service on purpose is listed first, with its reason, and then every call of every client.",
    `## Differences, client by client\n\n${byClient(tables)}`,
    await byInterface(),
    await byField(),
    await overGraphql(),
    ...tables.map(callsOf),
  ];
  return `${parts.join("\n\n")}\n`;
}

const read = (path) => import(join(root, path));
const code = (name) => `\`${name}\``;
const rows = (entries) => entries.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
const grid = (head, entries) => `${rows([head, head.map(() => "---")])}\n${rows(entries)}`;

async function clientTables() {
  const { mcpCalls, mcp3Calls } = await read("tests/compat/mcp-calls.ts");
  const { pythonCalls, flashCalls } = await read("tests/compat/python-calls.ts");
  const { queueCalls } = await read("tests/compat/queue-calls.ts");
  const { runpodctlCalls } = await read("tests/compat/runpodctl-calls.ts");
  const python = [pythonCalls["1"], pythonCalls["2"], flashCalls];
  return [...Object.values(queueCalls), ...python, runpodctlCalls, mcpCalls, mcp3Calls.v2, mcp3Calls.v1];
}

/** Every client with its differences: calls with the same reason in one row; "none" if all work alike. */
function byClient(tables) {
  const entries = tables.flatMap(({ client, calls, differences = {} }) => {
    const refused = Map.groupBy(
      Object.entries(calls).filter(([, outcome]) => outcome !== "works"),
      ([, outcome]) => outcome.refused ?? outcome.missing,
    );
    const found = [
      ...Object.entries(differences).map(([what, why]) => [what, why]),
      ...[...refused].map(([why, those]) => [`refused: ${those.map(([name]) => code(name)).join(", ")}`, why]),
    ];
    return (found.length > 0 ? found : [["none", ""]]).map((cells) => [client, ...cells]);
  });
  return grid(["client", "difference", "why"], entries);
}

/** What differs for all clients of an interface; fails if a test that is named is not there. */
async function byInterface() {
  const { interfaceDifferences } = await read("tests/compat/descriptions/interfaces.ts");
  const parts = Object.entries(interfaceDifferences).map(([where, those]) => {
    const missing = those.find(({ shownBy }) => !existsSync(join(root, shownBy)));
    if (missing)
      throw new Error(`tests/compat/descriptions/interfaces.ts names ${missing.shownBy}, which is not there.`);
    const entries = those.map(({ what, why, shownBy }) => [what, why, code(shownBy)]);
    return `### ${where}\n\n${grid(["difference", "why", "shown by"], entries)}`;
  });
  return `## Differences, interface by interface\n\n${parts.join("\n\n")}`;
}

/** What the walks over the public descriptions know: their tests skip nothing else. */
async function byField() {
  const { v1Differences, v2Differences } = await read("tests/compat/descriptions/differences.ts");
  const parts = Object.entries({ "REST v1": v1Differences, "REST v2": v2Differences }).map(([name, known]) => {
    const { absent, defaultsNotShown, refusedWords, operations } = known;
    const entries = [
      ...Object.entries(operations).map(([what, why]) => ["operation", code(what), why]),
      ...Object.entries(refusedWords).map(([what, why]) => ["refused query", code(what), why]),
      ...Object.entries(defaultsNotShown).map(([what, why]) => ["default that replies do not show", code(what), why]),
      ...Object.entries(absent).flatMap(([kind, fields]) =>
        Object.entries(fields).map(([field, why]) => [
          "field that may be absent or null",
          code(`${kind}.${field}`),
          why,
        ]),
      ),
    ];
    return `### ${name}\n\n${grid(["difference", "where", "why"], entries)}`;
  });
  return `## Differences, field by field\n\n\`tests/compat/descriptions\` compares every operation, field, default, word and query with the public descriptions. It knows these differences and no others.\n\n${parts.join("\n\n")}`;
}

/** The operations that are refused, and the inputs that are taken and have no effect. */
async function overGraphql() {
  const { refusals } = await read("tests/compat/graphql/refusals.ts");
  const { schema } = await read("packages/server/dist/edges/graphql/schema/index.js");
  const { isIgnored } = await read("packages/server/dist/edges/graphql/ignored.js");
  const operations = Object.entries(refusals).map(([field, { by, why }]) => [code(field), by.join(", "), why]);
  const inputs = Object.values(schema.getTypeMap()).flatMap((type) => {
    const names = Object.keys(type.getFields?.() ?? {}).filter((name) => isIgnored(type, name));
    return names.length === 0 ? [] : [[code(type.name), names.map(code).join(", "), whyIgnored(type, names[0])]];
  });
  return [
    "## Differences over GraphQL",
    "Every operation that public clients send fits the schema. These are refused in words:",
    grid(["operation", "sent by", "why"], operations),
    "These inputs are taken, have no effect, and are named in the header `x-millrace-ignored`:",
    grid(["input", "fields", "why"], inputs),
  ].join("\n\n");
}

/** The reason that the schema gives where the ignored fields of a type begin. */
function whyIgnored(type, name) {
  const [, why] = /^Ignored[^:]*: (.+)\.$/.exec(type.getFields()[name].description ?? "") ?? [];
  if (!why) throw new Error(`${type.name}.${name} is ignored, and its description gives no reason.`);
  return why;
}

function callsOf({ client, note, calls }) {
  const words = (outcome) => {
    if (outcome === "works") return ["works", ""];
    return outcome.refused ? ["refused", outcome.refused] : ["missing", outcome.missing];
  };
  const entries = Object.entries(calls).map(([call, outcome]) => [code(call), ...words(outcome)]);
  const works = Object.values(calls).filter((outcome) => outcome === "works").length;
  return `## ${client}\n\n${note} ${works} of ${entries.length} calls work.\n\n${grid(["call", "outcome", "why"], entries)}`;
}
