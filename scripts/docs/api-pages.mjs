// The reference pages of the HTTP interfaces, for scripts/docs.mjs: what each operation does, from the descriptions
// that the server serves.
import { join } from "node:path";
import { root } from "../clone.mjs";

const cell = (text) => (text ?? "").replaceAll("\n", " ").replaceAll("|", "\\|").trim();

/** Every operation of the REST interfaces, by subject. */
export function restPage(documents) {
  const intro =
    "Every operation with what it does. `/docs` on your server shows the same with every field, and sends requests; the documents themselves are at `/v1/openapi.json` and `/v2/openapi.json`.";
  const parts = documents.map(({ info, paths }) => `## ${info.title}\n\n${bySubject(paths).join("\n")}`);
  return `# REST\n\n${intro}\n\n${parts.join("\n")}`;
}

function bySubject(paths) {
  const subjects = Map.groupBy(operationsOf(paths), ({ tags }) => tags?.[0] ?? "other");
  return [...subjects].map(([subject, operations]) => {
    const rows = operations.map(
      ({ method, path, summary, description }) =>
        `| \`${method.toUpperCase()} ${path}\` | **${cell(summary)}.** ${cell(description)} |`,
    );
    return `### ${subject[0].toUpperCase()}${subject.slice(1)}\n\n| operation | what it does |\n| --- | --- |\n${rows.join("\n")}\n`;
  });
}

const operationsOf = (paths) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.summary !== undefined)
      .map(([method, operation]) => ({ method, path, ...operation })),
  );

/** Every query and mutation with its arguments, then all types. */
export async function graphqlPage() {
  const { schema } = await import(join(root, "packages/server/dist/edges/graphql/schema/index.js"));
  const { printSchema } = await import("graphql");
  const table = (type) => {
    const rows = Object.values(type.getFields()).map(({ name, args, type: returns, description }) => {
      const taken = args.map((argument) => `\`${argument.name}: ${argument.type}\``).join(", ");
      return `| \`${name}\` | ${taken} | \`${returns}\` | ${cell(description)} |`;
    });
    return `| name | arguments | returns | what it does |\n| --- | --- | --- | --- |\n${rows.join("\n")}\n`;
  };
  const intro =
    '`POST /graphql` with `{"query": …, "variables": …}` and the same key as everywhere. A browser that opens `/graphql` gets an explorer. The resources are the same as those of the REST interfaces. Inputs that are ignored, by their description, and variables that are not declared are named in the header `x-millrace-ignored`.';
  return `# GraphQL\n\n${intro}\n\n## Queries\n\n${table(schema.getQueryType())}\n## Mutations\n\n${table(schema.getMutationType())}\n## Types\n\n\`\`\`graphql\n${printSchema(schema)}\n\`\`\`\n`;
}
