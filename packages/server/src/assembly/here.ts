import type { Config } from "../config.js";
import type { HostFacts } from "../domain/hosts/host.js";
import type { DataDirectory } from "../host/data-directory.js";
import { freeMemoryShare } from "../host/inventories/processors.js";
import type { Quota } from "../host/quota.js";
import type { ClusterVolumes, Here, ReachedCluster } from "../operations/needs.js";
import { handlerCommand } from "../providers/process/process-provider.js";
import type { Providers } from "./providers.js";

/** A cluster that servers tend in turn. */
export interface ClusterHost extends ReachedCluster {
  readonly id: string;
  readonly facts: () => HostFacts;
  readonly volumes: ClusterVolumes;
  /** Whether it is this server's turn. */
  readonly isTended: () => boolean;
}

/** A server that tends its own machine and, when it is its turn, clusters. */
export const withClusters = (
  machine: ReturnType<typeof onMachine>,
  clusters: readonly ClusterHost[],
): ReturnType<typeof onMachine> => {
  const tended = () => clusters.filter(({ isTended }) => isTended());
  return {
    ...machine,
    clusters: clusters.map(({ no, name, podClasses, connect }) => ({ no, name, podClasses, connect })),
    hosts: () => [...machine.hosts(), ...tended().map(({ no, id, facts }) => ({ no, id, facts: facts() }))],
    readsLogs: (hostNo) => machine.readsLogs(hostNo) || clusters.some(({ no }) => no === hostNo),
    tends: (hostNo) => machine.tends(hostNo) || tended().some(({ no }) => no === hostNo),
  };
};

/** A server that tends its own machine alone. */
export const onMachine = (
  host: { readonly no: number; readonly id: string },
  facts: () => HostFacts,
): Pick<Here, "hostNo" | "facts" | "hosts" | "tends" | "readsLogs" | "clusters"> => ({
  hostNo: host.no,
  clusters: [],
  facts,
  hosts: () => [{ ...host, facts: facts() }],
  tends: (hostNo) => hostNo === host.no,
  readsLogs: (hostNo) => hostNo === host.no,
});

/** What operations may know about this host, including what its providers know. */
export function factsHere(
  config: Config,
  directory: DataDirectory,
  {
    host,
    facts,
    providers,
    quota,
    server,
    clusters,
  }: {
    host: { no: number; id: string };
    facts: () => HostFacts;
    providers: Pick<Providers, "imageComplaint" | "heldVolumes">;
    quota: Quota;
    server: Here["server"];
    clusters: readonly ClusterHost[];
  },
): Here {
  return {
    ...withClusters(onMachine(host, facts), clusters),
    ...(server ? { server } : {}),
    localProcesses: config.localProcesses,
    places: config.places,
    volumes: {
      dir: directory.volumes,
      quota,
      use: new Map(),
      bounds: new Map(),
      inClusters: clusters.map(({ volumes }) => volumes),
      ...(providers.heldVolumes ? { held: providers.heldVolumes } : {}),
    },
    workingDir: process.cwd(),
    stopGraceMs: config.stopGraceMs,
    freeMemoryShare,
    awayMs: config.awayMs,
    auditKeptMs: config.auditKeptMs,
    flashBootMs: config.flashBootMs,
    hasHandler: (directory) => handlerCommand(directory) !== undefined,
    ...(providers.imageComplaint ? { imageComplaint: providers.imageComplaint } : {}),
  };
}
