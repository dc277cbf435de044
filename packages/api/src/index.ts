export * from "./client.js";
export * from "./errors.js";
export * from "./jobs.js";
export * from "./management.js";
export * from "./states.js";
