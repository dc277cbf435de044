import type { Config } from "../config.js";
import type { Source } from "../domain/endpoints/template.js";
import type { Inventory } from "../host/inventory.js";
import type { Providers } from "./providers.js";

/** What a machine has. If there are other hosts, also which kinds of workers must run on another host. */
export const stockOf = (
  machine: Inventory,
  config: Config,
  { runsImages }: Pick<Providers, "runsImages">,
): Inventory => ({
  async read() {
    if (config.databaseUrl === undefined && !config.kubernetes) return machine.read();
    const [stock, hasImages] = await Promise.all([machine.read(), runsImages()]);
    const sources: readonly (readonly [Source, boolean])[] = [
      ["directory", config.localProcesses],
      ["image", hasImages],
    ];
    return { ...stock, cannotRun: sources.filter(([, can]) => !can).map(([source]) => source) };
  },
});
