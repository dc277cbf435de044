import type { Config } from "../config.js";
import type { WorkerKind } from "../domain/hosts/host.js";
import type { Inventory } from "../host/inventory.js";
import type { engineFacts } from "../providers/docker/facts.js";

/** What a machine has. If servers share a database, also which kinds of worker it cannot start, so that another may. */
export const stockOf = (
  machine: Inventory,
  config: Config,
  engine: ReturnType<typeof engineFacts> | undefined,
): Inventory => ({
  async read() {
    if (config.databaseUrl === undefined) return machine.read();
    const [stock, hasEngine] = await Promise.all([machine.read(), engine?.isThere() ?? false]);
    const kinds: readonly (readonly [WorkerKind, boolean])[] = [
      ["process", config.localProcesses],
      ["container", hasEngine],
    ];
    return { ...stock, cannotRun: kinds.filter(([, can]) => !can).map(([kind]) => kind) };
  },
});
