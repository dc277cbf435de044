/** How the guide is indexed when it is built, and searched in the browser: both must agree. */
export const searchOptions = {
  fields: ["title", "page", "text"],
  storeFields: ["title", "page", "address"],
  searchOptions: {
    boost: { title: 4, page: 2 },
    prefix: true,
    fuzzy: (term: string): number | false => (term.length > 4 ? 0.2 : false),
    combineWith: "AND" as const,
  },
};
