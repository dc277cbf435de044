/** How ids and errors are shown to people, apart from the schemas: programs that start often load only this. */
export * from "./job-error.js";
export * from "./short-names.js";
