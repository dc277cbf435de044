import { unlikeClusters } from "../domain/hosts/server-clusters.js";
import type { Needs } from "../operations/needs.js";
import type { Server } from "../store/index.js";

/** Warns of each live server that has other clusters than this one, once for as long as it has them. */
export function clusterComparison({ here, emit }: Needs<"here" | "emit">): (others: readonly Server[]) => void {
  let told: ReadonlySet<string> = new Set();
  return (others) => {
    const unlike = others.flatMap(({ no, address, clusters }) => {
      // servers of an earlier version do not tell theirs
      const them = address ? `the server at ${address.host}:${address.port}` : `server ${no}`;
      return (clusters && unlikeClusters(here.clusters, clusters, them)) ?? [];
    });
    for (const message of unlike) if (!told.has(message)) emit({ type: "server.warning", message });
    told = new Set(unlike);
  };
}
