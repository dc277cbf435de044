import { existsSync, mkdtempSync, watch } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DirectorySpec } from "../../provider.js";
import type { Wish } from "../contracts/scene.js";
import { processProvider } from "./process-provider.js";

/** An empty data directory. */
export const newHost = () => mkdtempSync(join(tmpdir(), "millrace-host-"));
export const providerOf = (dataDir: string) =>
  processProvider({ dataDir, logsDir: join(dataDir, "logs"), awayMs: 60_000 });

/** Resolves when the keeper of this directory has removed its socket. */
export function keeperGone(dataDir: string): Promise<void> {
  return new Promise((resolve) => {
    const watcher = watch(dataDir, look);
    function look() {
      if (existsSync(join(dataDir, "keeper.sock"))) return;
      watcher.close();
      resolve();
    }
    look();
  });
}

/** What the provider is asked to start for a wish of the contract. */
export const specOf = ({ workerId, directory, command, env }: Wish): DirectorySpec => ({
  workerId,
  from: { directory },
  entrypoint: [],
  command,
  env,
  mounts: [],
});
