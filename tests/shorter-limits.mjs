// Loaded with `--import` before a test's server: gives some of its limits the values of MILLRACE_TEST_LIMITS.
import { limits } from "../packages/server/dist/limits/index.js";

const shorter = JSON.parse(process.env.MILLRACE_TEST_LIMITS);
for (const name of Object.keys(shorter)) if (!(name in limits)) throw new Error(`there is no limit ${name}`);
Object.assign(limits, shorter);
