// The shapes of replies in the generated reference: a JSON schema written as a TypeScript type.

const indented = (text) => text.replaceAll("\n", "\n  ");

/** The type that a schema describes; objects take a line for each field. */
function shapeOf(schema, document) {
  if (schema.$ref) return shapeOf(document.components.schemas[schema.$ref.split("/").at(-1)], document);
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return [...new Set(either.map((each) => shapeOf(each, document)))].join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (Array.isArray(schema.type)) return schema.type.join(" | ");
  if (schema.type === "array") {
    const item = shapeOf(schema.items ?? {}, document);
    return item.includes(" | ") && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;
  }
  if (schema.type === "integer") return "number";
  if (schema.type !== "object") return schema.type ?? "any";
  const { properties = {}, required = [], additionalProperties } = schema;
  const fields = Object.entries(properties).map(
    ([name, value]) => `${name}${required.includes(name) ? "" : "?"}: ${indented(shapeOf(value, document))};`,
  );
  if (typeof additionalProperties === "object")
    fields.push(`[name: string]: ${indented(shapeOf(additionalProperties, document))};`);
  return fields.length === 0 ? "object" : `{\n  ${fields.join("\n  ")}\n}`;
}

/** The reply that an operation gives when all is well; throws if no document has the operation. */
function replyOf(documents, method, path) {
  const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, "\\{\\w+\\}")}$`);
  for (const document of documents)
    for (const [each, methods] of Object.entries(document.paths)) {
      const operation = pattern.test(each) ? methods[method.toLowerCase()] : undefined;
      if (!operation) continue;
      const status = Object.keys(operation.responses).find((code) => code.startsWith("2"));
      const { schema } = operation.responses[status].content?.["application/json"] ?? {};
      return shapeOf(schema ?? {}, document);
    }
  throw new Error(`No document has ${method} ${path}.`);
}

/** The shapes of replies, each written once however many operations return it. */
export class Shapes {
  #documents;
  /** By the type of one entry: what returns it. */
  #calls = new Map();

  constructor(documents) {
    this.#documents = documents;
  }

  /** A link to the shape that an operation returns. */
  linkTo(method, path) {
    const type = replyOf(this.#documents, method, path);
    const entry = type.replace(/\[\]$/, "");
    const calls = this.#calls.get(entry) ?? [];
    this.#calls.set(entry, calls);
    const call = `${method} ${path}`;
    const words = entry === type ? call : `${call}, an array`;
    if (!calls.includes(words)) calls.push(words);
    return `[${call}](#shape-${[...this.#calls.keys()].indexOf(entry) + 1})`;
  }

  page() {
    const section = ([entry, calls], n) =>
      `### Shape ${n + 1}\n\n${calls.map((call) => `- ${call}`).join("\n")}\n\n\`\`\`ts\n${entry}\n\`\`\`\n`;
    return [...this.#calls].map(section).join("\n");
  }
}
