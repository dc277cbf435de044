/** A type as the reference writes it. */
export type Shape =
  | { readonly is: "any" }
  | { readonly is: "plain"; readonly of: string }
  | { readonly is: "literal"; readonly value: unknown }
  | { readonly is: "array"; readonly of: Shape }
  | { readonly is: "either"; readonly of: readonly Shape[] }
  | { readonly is: "record"; readonly of: Shape }
  | { readonly is: "object"; readonly fields: ReadonlyMap<string, { readonly may: boolean; readonly of: Shape }> };

/** Reads a TypeScript type; `names` are the types that it names. */
export function shapeOf(written: string, names: Readonly<Record<string, Shape>> = {}): Shape {
  const tokens = written.match(/"[^"]*"|[A-Za-z_]\w*|\[\]|[{}()[\]:;,?|]/g) ?? [];
  let at = 0;
  const next = () => tokens[at];
  const take = (wanted?: string) => {
    const token = tokens[at++];
    if (token === undefined || (wanted !== undefined && token !== wanted))
      throw new Error(`${wanted ?? "a type"} is expected, not ${token}, in ${written}`);
    return token;
  };
  const either = (): Shape => {
    const all = [array()];
    while (next() === "|") {
      take();
      all.push(array());
    }
    return all.length === 1 ? (all[0] as Shape) : { is: "either", of: all };
  };
  const array = (): Shape => {
    let shape = one();
    while (next() === "[]") {
      take();
      shape = { is: "array", of: shape };
    }
    return shape;
  };
  const one = (): Shape => {
    const token = take();
    if (token === "{") return object();
    if (token === "(") {
      const inner = either();
      take(")");
      return inner;
    }
    if (token.startsWith('"')) return { is: "literal", value: JSON.parse(token) };
    if (token === "null") return { is: "literal", value: null };
    if (token === "any") return { is: "any" };
    if (["string", "number", "boolean", "object"].includes(token)) return { is: "plain", of: token };
    const named = names[token];
    if (!named) throw new Error(`${token} is no type, in ${written}`);
    return named;
  };
  const object = (): Shape => {
    const fields = new Map<string, { may: boolean; of: Shape }>();
    let values: Shape | undefined;
    while (next() !== "}") {
      const name = take();
      if (name === "[") {
        for (const token of ["name", ":", "string", "]", ":"]) take(token);
        values = either();
      } else {
        const may = next() === "?";
        if (may) take();
        take(":");
        fields.set(name, { may, of: either() });
      }
      if (next() === ";" || next() === ",") take();
    }
    take("}");
    return values ? { is: "record", of: values } : { is: "object", fields };
  };
  const shape = either();
  if (at < tokens.length) throw new Error(`${next()} is too much, in ${written}`);
  return shape;
}

/** What of a value is not as the type says; nothing if it fits. */
export function differences(value: unknown, shape: Shape, at = "it"): string[] {
  switch (shape.is) {
    case "any":
      return [];
    case "literal":
      return value === shape.value ? [] : [`${at} is ${JSON.stringify(value)}, not ${JSON.stringify(shape.value)}`];
    case "either":
      return shape.of.some((each) => differences(value, each).length === 0)
        ? []
        : [`${at} is ${JSON.stringify(value)}, but the help gives other types`];
    case "plain": {
      const isOne = shape.of === "object" ? isObject(value) : typeof value === shape.of;
      return isOne ? [] : [`${at} is ${JSON.stringify(value)}, no ${shape.of}`];
    }
    case "array":
      if (!Array.isArray(value)) return [`${at} is no array`];
      return value.flatMap((each, n) => differences(each, shape.of, `${at}[${n}]`));
    case "record":
      if (!isObject(value)) return [`${at} is no object`];
      return Object.entries(value).flatMap(([name, each]) => differences(each, shape.of, `${at}.${name}`));
    case "object":
      return isObject(value) ? ofFields(value, shape.fields, at) : [`${at} is no object`];
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function ofFields(
  value: Readonly<Record<string, unknown>>,
  fields: Extract<Shape, { is: "object" }>["fields"],
  at: string,
): string[] {
  const missing = [...fields].filter(([name, { may }]) => !may && !Object.hasOwn(value, name));
  return [
    ...missing.map(([name]) => `${at} has no ${name}`),
    ...Object.entries(value).flatMap(([name, inner]) => {
      const field = fields.get(name);
      return field
        ? differences(inner, field.of, `${at}.${name}`)
        : [`${at} has ${name}, of which the help knows nothing`];
    }),
  ];
}
