import {
  type DocumentNode,
  type GraphQLInputType,
  getNamedType,
  isInputObjectType,
  Kind,
  type OperationDefinitionNode,
  TypeInfo,
  typeFromAST,
  visit,
  visitWithTypeInfo,
} from "graphql";
import { schema } from "./schema/index.js";

interface Sent {
  readonly document: DocumentNode;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly operationName: string | undefined;
}

/**
 * The inputs of a valid query that have no effect: fields that the schema marks with `@ignored`, at every depth, and
 * variables that the operation does not declare.
 */
export function ignoredInputs({ document, variables, operationName }: Sent): string[] {
  const names = new Set<string>();
  const operation = operationIn(document, operationName);
  if (!operation) return [];
  for (const name of inLiterals(document, operation)) names.add(name);
  const declared = new Map(
    operation.variableDefinitions?.map((each) => [
      each.variable.name.value,
      typeFromAST(schema, each.type) as GraphQLInputType | undefined,
    ]),
  );
  for (const [name, value] of Object.entries(variables)) {
    const type = declared.get(name);
    if (type) addWithin(names, type, value, name);
    else names.add(name);
  }
  return [...names];
}

const operationIn = ({ definitions }: DocumentNode, name: string | undefined): OperationDefinitionNode | undefined =>
  definitions
    .filter((each) => each.kind === Kind.OPERATION_DEFINITION)
    .find((each) => name === undefined || each.name?.value === name);

/** Those that an operation and its fragments write into the query's text. */
function inLiterals(document: DocumentNode, operation: OperationDefinitionNode): string[] {
  const found: string[] = [];
  const path: string[] = [];
  const types = new TypeInfo(schema);
  const within = {
    enter: ({ name }: { readonly name: { readonly value: string } }) => void path.push(name.value),
    leave: () => void path.pop(),
  };
  const look = {
    OperationDefinition: (node: OperationDefinitionNode) => (node === operation ? undefined : false),
    VariableDefinition: () => false,
    Argument: within,
    ObjectField: {
      enter: (node: { readonly name: { readonly value: string } }) => {
        within.enter(node);
        const type = types.getParentInputType();
        if (type && isIgnored(getNamedType(type), node.name.value)) found.push(path.join("."));
      },
      leave: within.leave,
    },
  };
  visit(document, visitWithTypeInfo(types, look));
  return found;
}

function addWithin(names: Set<string>, type: GraphQLInputType, value: unknown, path: string): void {
  const named = getNamedType(type);
  if (!isInputObjectType(named) || typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const each of value) addWithin(names, named, each, path);
    return;
  }
  const fields = named.getFields();
  for (const [name, inner] of Object.entries(value)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (isIgnored(named, name)) names.add(`${path}.${name}`);
    else if (field) addWithin(names, field.type, inner, `${path}.${name}`);
  }
}

/** Whether the schema marks a field of an input with `@ignored`. */
export function isIgnored(type: ReturnType<typeof getNamedType>, name: string): boolean {
  if (!isInputObjectType(type)) return false;
  const fields = type.getFields();
  const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
  return field?.astNode?.directives?.some((each) => each.name.value === "ignored") ?? false;
}
