import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../harness.js";

/** The folder of public clients that are no packages of this repository; `npm test` makes it. */
export const clients = process.env.MILLRACE_TEST_CLIENTS ?? join(root, ".cache/clients");

/** A package of that folder. */
// biome-ignore lint/suspicious/noExplicitAny: its types lie beside it
export const clientPackage = (name: string): Promise<any> =>
  import(pathToFileURL(createRequire(join(clients, "package.json")).resolve(name)).href);
