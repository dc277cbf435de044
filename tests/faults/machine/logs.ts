import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** The total size of each worker's log files in bytes, by worker. */
export function logBytes(dataDir: string): Map<string, number> {
  const bytes = new Map<string, number>();
  for (const name of readdirSync(join(dataDir, "logs"))) {
    const worker = name.split(".")[0] ?? name;
    const size = statSync(join(dataDir, "logs", name), { throwIfNoEntry: false })?.size ?? 0;
    bytes.set(worker, (bytes.get(worker) ?? 0) + size);
  }
  return bytes;
}
