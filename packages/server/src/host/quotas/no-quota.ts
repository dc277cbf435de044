import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { Quota } from "../quota.js";

/** Enforces nothing; `why` is the reason. */
export const noQuota = (why: string): Quota => ({
  by: undefined,
  make: async (path) => void mkdirSync(path, { recursive: true, mode: 0o700 }),
  bound: async () => why,
  remove: (path) => rm(path, { recursive: true, force: true, maxRetries: 5 }),
});
