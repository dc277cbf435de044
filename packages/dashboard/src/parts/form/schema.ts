/** What a form must know of a field's schema. */
interface FieldSchema {
  readonly type?: string;
  readonly anyOf?: readonly FieldSchema[];
  readonly const?: string | number;
  readonly description?: string;
  readonly title?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly items?: FieldSchema;
  readonly properties?: Readonly<Record<string, FieldSchema>>;
  readonly required?: readonly string[];
}

/** How a field is asked for. */
export type Kind = "text" | "number" | "switch" | "choice" | "list" | "pairs" | "group" | "other";

export interface Field {
  readonly name: string;
  readonly kind: Kind;
  readonly help: string;
  readonly isRequired: boolean;
  readonly isWhole: boolean;
  readonly choices: readonly string[];
  readonly minimum: number | undefined;
  readonly maximum: number | undefined;
  /** Of a group. */
  readonly fields: readonly Field[];
}

/** The fields of a body, as its schema names them. */
export function fieldsOf(schema: object, names?: readonly string[]): Field[] {
  const { properties = {}, required = [] } = schema as FieldSchema;
  const wanted = names ?? Object.keys(properties);
  return wanted.flatMap((name) => {
    const property = properties[name];
    return property ? [fieldOf(name, property, required.includes(name))] : [];
  });
}

function fieldOf(name: string, schema: FieldSchema, isRequired: boolean): Field {
  const inner = withoutNull(schema);
  const forms = inner.anyOf ?? [];
  const choices = forms.flatMap((form) => (typeof form.const === "string" && form.const !== "" ? [form.const] : []));
  const number = [inner, ...forms].find(({ type, const: fixed }) => fixed === undefined && isNumber(type));
  return {
    name,
    kind: kindOf(inner, choices, number),
    help: schema.description ?? inner.description ?? inner.title ?? "",
    isRequired,
    isWhole: number?.type === "integer",
    choices,
    minimum: number?.minimum,
    maximum: number?.maximum,
    fields: inner.properties ? fieldsOf(inner) : [],
  };
}

const isNumber = (type: string | undefined) => type === "integer" || type === "number";

/** A schema that also allows null, without it. */
function withoutNull(schema: FieldSchema): FieldSchema {
  const rest = schema.anyOf?.filter(({ type }) => type !== "null");
  if (!rest || rest.length === schema.anyOf?.length) return schema;
  return rest.length === 1 ? (rest[0] as FieldSchema) : { ...schema, anyOf: rest };
}

function kindOf(schema: FieldSchema, choices: readonly string[], number: FieldSchema | undefined): Kind {
  if (choices.length > 0 && (schema.anyOf ?? []).every(({ const: fixed }) => fixed !== undefined)) return "choice";
  if (number) return "number";
  if (schema.type === "boolean") return "switch";
  if (schema.type === "array" && isText(schema.items)) return "list";
  if (schema.type === "object" && !schema.properties) return "pairs";
  if (schema.type === "object") return "group";
  return schema.type === "string" ? "text" : "other";
}

const isText = (items: FieldSchema | undefined): boolean =>
  items?.type === "string" || items?.anyOf?.every(({ const: fixed }) => typeof fixed === "string") === true;

export type Values = Readonly<Record<string, unknown>>;

/** Whether a field holds what nobody may read on a screen. */
export const isSecret = (name: string): boolean => ["password", "value", "accessSecret"].includes(name);

/**
 * What a person has changed: the fields that differ from what they were, those that are empty now as null. Of a group only
 * the fields that differ are sent, too: the server keeps the others.
 */
export function changesOf(fields: readonly Field[], before: Values, after: Values): Record<string, unknown> {
  const changed = fields.flatMap((field): [string, unknown][] => {
    const [old, now] = [before[field.name], after[field.name]];
    if (field.kind === "group") {
      const inner = changesOf(field.fields, (old ?? {}) as Values, (now ?? {}) as Values);
      return Object.keys(inner).length === 0 ? [] : [[field.name, inner]];
    }
    return isSame(old, now) ? [] : [[field.name, isEmpty(now) ? null : now]];
  });
  return Object.fromEntries(changed);
}

/** The fields of a new thing: those that were filled in. */
export const filled = (values: Values): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => !isEmpty(value)));

const isEmpty = (value: unknown): boolean => value === undefined || value === null || value === "";
const isSame = (a: unknown, b: unknown): boolean =>
  (isEmpty(a) && isEmpty(b)) || JSON.stringify(a) === JSON.stringify(b);

/** A value in one line, for a list of changes. */
export function inWords(value: unknown): string {
  if (isEmpty(value)) return "nothing";
  return typeof value === "string" ? value : JSON.stringify(value);
}
