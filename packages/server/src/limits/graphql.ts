import { kib, mib } from "./units.js";

/** GraphQL. */
export const graphql = {
  graphqlTokensMax: 2_000, // fits 240 variables in a query's text; takes 10 ms to validate, 4,000 up to 50 ms
  graphqlEntriesMax: 50_000, // of all lists in one query, environments included, under whatever aliases
  graphqlIntrospectedMax: 20_000, // values about the schema in one query, made in one turn: 25 ms; a tool's query has 8,200
  graphqlBytesMax: 8 * mib, // of a query's reply, which is made in memory
  graphqlSmallEntries: 1_000, // a query that lists more entries than this takes a loan
  graphqlSmallBytes: 256 * kib, // a query whose reply is larger than this takes a loan
  graphqlLargeBytes: 32 * mib, // of such a loan, for the query's entries and its reply
  graphqlSelectionsMax: 300, // fields are compared pairwise: 300 take 10 ms, 2,000 take 600 ms; introspection has 82
  graphqlInputFieldsMax: 200, // of an object in the variables; the largest input type has 30
  graphqlDepthMax: 12,
  graphqlLinesMax: 5_000, // of a query
  graphqlMistakesMax: 20, // told of a query
} as const;
