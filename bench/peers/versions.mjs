// The versions of the peers.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const names = { bullmq: "BullMQ", "graphile-worker": "graphile-worker", "pg-boss": "pg-boss" };

export function versionOf(name) {
  const file = join(import.meta.dirname, "../node_modules", name, "package.json");
  return JSON.parse(readFileSync(file, "utf8")).version;
}

/** A line for the peers of these rows. */
export function peerVersions(rows) {
  const used = Object.keys(names).filter((name) => rows.some(({ peers = [] }) => peers.includes(name)));
  if (used.length === 0) return [];
  return [`Peers: ${used.map((name) => `${names[name]} ${versionOf(name)}`).join(", ")}`];
}
