import type { Config } from "../config.js";
import type { Source } from "../domain/endpoints/template.js";
import type { Inventory } from "../host/inventory.js";
import type { engineFacts } from "../providers/docker/facts.js";

/** What a machine has. If servers share a database, also which kinds of workers must run on another host. */
export const stockOf = (
  machine: Inventory,
  config: Config,
  engine: ReturnType<typeof engineFacts> | undefined,
): Inventory => ({
  async read() {
    if (config.databaseUrl === undefined) return machine.read();
    const [stock, hasEngine] = await Promise.all([machine.read(), engine?.isThere() ?? false]);
    const sources: readonly (readonly [Source, boolean])[] = [
      ["directory", config.localProcesses],
      ["image", hasEngine],
    ];
    return { ...stock, cannotRun: sources.filter(([, can]) => !can).map(([source]) => source) };
  },
});
