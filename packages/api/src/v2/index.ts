export * from "./account.js";
export * from "./catalog.js";
export * from "./container.js";
export * from "./endpoints.js";
export * from "./problems.js";
export * from "./registries.js";
export * from "./templates.js";
export * from "./volumes.js";
