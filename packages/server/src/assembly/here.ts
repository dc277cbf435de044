import type { Config } from "../config.js";
import type { HostFacts } from "../domain/hosts/host.js";
import type { DataDirectory } from "../host/data-directory.js";
import { freeMemoryShare } from "../host/inventories/processors.js";
import type { Quota } from "../host/quota.js";
import type { ClusterVolumes, Here } from "../operations/needs.js";
import { handlerCommand } from "../providers/process/process-provider.js";
import type { Providers } from "./providers.js";

/** A cluster that servers tend in turn. */
export interface ClusterHost {
  readonly no: number;
  readonly id: string;
  readonly facts: () => HostFacts;
  readonly volumes: ClusterVolumes;
  /** Whether it is this server's turn. */
  readonly isTended: () => boolean;
}

/** A server that tends its own machine and, when it is its turn, a cluster. */
export const withCluster = (
  machine: ReturnType<typeof onMachine>,
  cluster: ClusterHost | undefined,
): ReturnType<typeof onMachine> =>
  cluster === undefined
    ? machine
    : {
        ...machine,
        hosts: () => [
          ...machine.hosts(),
          ...(cluster.isTended() ? [{ no: cluster.no, id: cluster.id, facts: cluster.facts() }] : []),
        ],
        readsLogs: (hostNo) => machine.readsLogs(hostNo) || hostNo === cluster.no,
        tends: (hostNo) => machine.tends(hostNo) || (hostNo === cluster.no && cluster.isTended()),
      };

/** A server that tends its own machine alone. */
export const onMachine = (
  host: { readonly no: number; readonly id: string },
  facts: () => HostFacts,
): Pick<Here, "hostNo" | "facts" | "hosts" | "tends" | "readsLogs"> => ({
  hostNo: host.no,
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
    cluster,
  }: {
    host: { no: number; id: string };
    facts: () => HostFacts;
    providers: Pick<Providers, "imageComplaint" | "heldVolumes">;
    quota: Quota;
    server: Here["server"];
    cluster: ClusterHost | undefined;
  },
): Here {
  return {
    ...withCluster(onMachine(host, facts), cluster),
    ...(server ? { server } : {}),
    localProcesses: config.localProcesses,
    places: config.places,
    volumes: {
      dir: directory.volumes,
      quota,
      use: new Map(),
      bounds: new Map(),
      ...(providers.heldVolumes ? { held: providers.heldVolumes } : {}),
      ...(cluster ? { inCluster: cluster.volumes } : {}),
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
