import type { Config } from "../config.js";
import type { HostFacts } from "../domain/hosts/host.js";
import type { DataDirectory } from "../host/data-directory.js";
import { freeMemoryShare } from "../host/inventories/processors.js";
import type { Quota } from "../host/quota.js";
import type { Here } from "../operations/needs.js";
import { handlerCommand } from "../providers/process/process-provider.js";
import type { Providers } from "./providers.js";

/** A server that tends its own machine alone. */
export const onMachine = (
  host: { readonly no: number; readonly id: string },
  facts: () => HostFacts,
): Pick<Here, "hostNo" | "facts" | "hosts" | "tends"> => ({
  hostNo: host.no,
  facts,
  hosts: () => [{ ...host, facts: facts() }],
  tends: (hostNo) => hostNo === host.no,
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
  }: {
    host: { no: number; id: string };
    facts: () => HostFacts;
    providers: Pick<Providers, "imageComplaint" | "heldVolumes">;
    quota: Quota;
    server: Here["server"];
  },
): Here {
  return {
    ...onMachine(host, facts),
    ...(server ? { server } : {}),
    localProcesses: config.localProcesses,
    volumes: {
      dir: directory.volumes,
      quota,
      use: new Map(),
      bounds: new Map(),
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
