import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputType,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
} from "graphql";

type Field = GraphQLField<unknown, unknown>;
/** The value of an argument, by its name; undefined if any will do. */
type Given = (name: string) => string | undefined;

/**
 * Selections that together ask for every field below a field of Query or Mutation, three levels deep for queries, with
 * arguments that name given things wherever they can. A query is asked once for each object in its result, because a
 * query may select only so many fields.
 */
export function selectionsOf(kind: "query" | "mutation", field: Field, given: Given): string[] {
  const type = getNamedType(field.type);
  const asked = `${field.name}${argumentsOf(field, given)}`;
  if (!isObjectType(type)) return [asked];
  const fields = Object.values(type.getFields());
  const isObject = (each: Field) => isObjectType(getNamedType(each.type));
  const plain = fields.filter((each) => !isObject(each)).map((each) => `${each.name}${argumentsOf(each, given)}`);
  const nested = fields
    .filter(isObject)
    .map((each) => `${each.name}${argumentsOf(each, given)}${selectionOf(each, kind === "query" ? 2 : 1, given)}`);
  if (kind === "mutation") return [`${asked} { ${[...plain, ...nested].join(" ")} }`];
  return [plain.join(" "), ...nested].filter((each) => each !== "").map((each) => `${asked} { ${each} }`);
}

/** A field's arguments. */
const argumentsOf = ({ args }: Field, given: Given): string => {
  const values = args.map((each: GraphQLArgument) => `${each.name}: ${literalOf(each.name, each.type, given)}`);
  return values.length === 0 ? "" : `(${values.join(", ")})`;
};

function literalOf(name: string, type: GraphQLInputType, given: Given): string {
  if (isNonNullType(type)) return literalOf(name, type.ofType, given);
  if (isListType(type)) return "[]";
  if (isEnumType(type)) return type.getValues()[0]?.name ?? "null";
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields()).map(
      (each) => `${each.name}: ${literalOf(each.name, each.type, given)}`,
    );
    return `{${fields.join(", ")}}`;
  }
  const scalar = getNamedType(type).name;
  if (scalar === "Int" || scalar === "Float") return "1";
  if (scalar === "Boolean") return "false";
  return JSON.stringify(given(name) ?? "");
}

/** All fields of a type, `depth` levels deep. */
function selectionOf(field: Field, depth: number, given: Given): string {
  const type = getNamedType(field.type);
  if (!isObjectType(type)) return "";
  const fields = Object.values(type.getFields())
    .filter((each) => depth > 1 || !isObjectType(getNamedType(each.type)))
    .map((each) => `${each.name}${argumentsOf(each, given)}${selectionOf(each, depth - 1, given)}`);
  return ` { ${fields.join(" ")} }`;
}
