import { GraphQLError, Kind } from "graphql";

/** The library's messages, without the values in them. */
const harmless = [
  /^(\w+ cannot represent [\w -]+): /,
  /^(Expected value of type "[\w![\]]+" to include required field "\w{1,80}")/,
  /^(Expected value of type "\w+" not to include unknown field "\w{1,80}")/,
  /^(Expected value of (?:non-null )?type "[\w![\]]+" (?:to be an object|not to be null))/,
  /^(Expected a value of non-null type "[\w![\]]+" to be provided)/,
];

/** A message of the library about a query's text, without the values in it: they may be secrets. */
export const withoutValues = (message: string): string =>
  message
    .replace(/\bfound (?:String |BlockString )?[{["][\s\S]*[}\]"]/, "found another value")
    .replace(/(?:,|\.) [Ff]ound: [\s\S]*$/, ".")
    .replace(/ cannot represent ([\w -]+): [\s\S]*$/, " cannot represent $1.");

/**
 * Describes a variable that does not match its type: with the place, but without the value, which may be a secret.
 * Undefined for any other error.
 */
export function misfit(error: GraphQLError): string | undefined {
  const cause = error.originalError;
  const node = error.nodes?.find((each) => each.kind === Kind.VARIABLE_DEFINITION);
  if (!(cause instanceof GraphQLError) || node === undefined) return undefined;
  const name = node.variable.name.value;
  // the library's message ends with the place and the reason
  const before = error.message.slice(0, error.message.length - cause.message.length - ": ".length);
  const place = `${name}${/ at ([\w.[\]]+)$/.exec(before)?.[1] ?? ""}`;
  const why = harmless.map((words) => words.exec(cause.message)?.[1]).find((words) => words !== undefined);
  return `The variable "$${name}" does not fit at "${place}": ${why ?? "it has another type"}.`;
}
