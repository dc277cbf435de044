import { kib, mib } from "./units.js";

/** GraphQL. */
export const graphql = {
  graphqlTokensMax: 2_000, // 240 variables in the text of a query; all of them take 10 ms to validate, 4,000 up to 50 ms
  graphqlEntriesMax: 50_000, // of all lists of one query, environments too, under whatever aliases
  graphqlBytesMax: 8 * mib, // of its answer, which is made in memory
  graphqlSliceCost: 160 * kib, // cost of one slice in a turn's budget: resolvers cost more than their bytes
  graphqlSmallEntries: 1_000, // a query that lists more, or whose answer is larger than
  graphqlSmallBytes: 256 * kib, // this, is given
  graphqlLargeBytes: 32 * mib, // for its entries and its answer
  graphqlSelectionsMax: 300, // fields are compared with each other: these in 10 ms, 2,000 in 600 ms; introspection has 82
  graphqlDepthMax: 12,
} as const;
