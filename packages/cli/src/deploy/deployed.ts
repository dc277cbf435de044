import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { configFolder, type Env } from "../contexts.js";
import type { Fields } from "../fields.js";
import { makeFolder } from "../files.js";
import type { SavedFields } from "../saved.js";

/** What was last deployed to an endpoint from here: its code, and the fields that its folder's file named. */
export interface Deployed {
  readonly code?: string;
  readonly template: readonly string[];
  readonly endpoint: readonly string[];
}

const nothing: Deployed = { template: [], endpoint: [] };

/** Fields that an endpoint keeps for ever. */
const isFixed = (name: string): boolean => name === "type" || name === "computeType";

/** What was deployed from this account, by server and endpoint. */
export class DeployedHere {
  readonly #file: string;
  readonly #server: string;

  constructor(env: Env, server: string) {
    this.#file = join(configFolder(env), "deployed.json");
    this.#server = server;
  }

  at(endpointId: string): Deployed {
    const kept = this.#all()[`${this.#server} ${endpointId}`];
    return { ...nothing, ...(typeof kept === "object" ? kept : {}) };
  }

  keep(endpointId: string, { template, endpoint }: SavedFields, code: string | undefined): void {
    const deployed = { code, template: Object.keys(template), endpoint: Object.keys(endpoint) };
    const all = { ...this.#all(), [`${this.#server} ${endpointId}`]: deployed };
    makeFolder(dirname(this.#file));
    writeFileSync(this.#file, `${JSON.stringify(all, undefined, 2)}\n`);
  }

  #all(): Readonly<Record<string, Deployed>> {
    try {
      return JSON.parse(readFileSync(this.#file, "utf8")) as Record<string, Deployed>;
    } catch {
      return {}; // then workers are replaced once more than they need be, and fields stay that are named no more
    }
  }
}

/** These fields, and those that are named no more, which go back to their defaults. */
export const withDefaults = (before: Deployed, { template, endpoint }: SavedFields): SavedFields => ({
  template: { ...cleared(before.template), ...template },
  endpoint: { ...cleared(before.endpoint), ...endpoint },
});

const cleared = (names: readonly string[]): Fields =>
  Object.fromEntries(names.filter((name) => !isFixed(name)).map((name) => [name, null]));
