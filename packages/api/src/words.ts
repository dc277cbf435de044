/** How ids, errors and times are shown to people, apart from the schemas: programs that start often load only this. */
export * from "./job-error.js";
export * from "./short-names.js";
export * from "./span.js";
