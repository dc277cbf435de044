import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { Quota } from "../quota.js";

/** Bounds nothing, and says why. */
export const noQuota = (why: string): Quota => ({
  by: undefined,
  make: async (path) => void mkdirSync(path, { recursive: true, mode: 0o700 }),
  bound: async () => why,
  remove: (path) => rm(path, { recursive: true, force: true, maxRetries: 5 }),
});
