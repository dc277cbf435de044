import { GraphQLError, Kind } from "graphql";

/** What the library says of a value without saying the value. */
const harmless = [
  /^(\w+ cannot represent [\w -]+): /,
  /^(Field "\w{1,80}" of required type "[\w![\]]+" was not provided)\.$/,
  /^(Field "\w{1,80}" is not defined by type "\w+")\./,
  /^(Expected (?:non-nullable )?type "[\w![\]]+" (?:to be an object|not to be null))\.$/,
];

/**
 * That a variable does not fit its type, with the place in it and without its value, which may be a secret. Undefined for any
 * other error.
 */
export function misfit(error: GraphQLError): string | undefined {
  const cause = error.originalError;
  const node = error.nodes?.find((each) => each.kind === Kind.VARIABLE_DEFINITION);
  if (!(cause instanceof GraphQLError) || node === undefined) return undefined;
  const name = node.variable.name.value;
  // the library's words end in the place and the reason; before them stands the value
  const before = error.message.slice(0, error.message.length - cause.message.length - "; ".length);
  const place = / at "([\w.[\]]+)"$/.exec(before)?.[1] ?? name;
  const why = harmless.map((words) => words.exec(cause.message)?.[1]).find((words) => words !== undefined);
  return `The variable "$${name}" does not fit at "${place}": ${why ?? "it has another type"}.`;
}
