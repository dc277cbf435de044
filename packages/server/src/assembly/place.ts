import type { Config } from "../config.js";
import type { HostFacts, ServerAddress } from "../domain/hosts/host.js";
import type { DataDirectory } from "../host/data-directory.js";
import { freeMemoryShare } from "../host/inventories/processors.js";
import type { Quota } from "../host/quota.js";
import type { PlaceFacts } from "../operations/needs.js";
import type { engineFacts } from "../providers/docker/facts.js";
import { handlerCommand } from "../providers/process/process-provider.js";

/** What operations may know about this host, including its container engine if there is one. */
export function placeFacts(
  config: Config,
  directory: DataDirectory,
  {
    hostNo,
    facts,
    engine,
    quota,
    server,
  }: {
    hostNo: number;
    facts: () => HostFacts;
    engine: ReturnType<typeof engineFacts> | undefined;
    quota: Quota;
    server: ServerAddress | undefined;
  },
): PlaceFacts {
  return {
    hostNo,
    facts,
    ...(server ? { server } : {}),
    localProcesses: config.localProcesses,
    volumes: {
      dir: directory.volumes,
      quota,
      use: new Map(),
      bounds: new Map(),
      ...(engine && config.dockerVolumes ? { engine: engine.volumes } : {}),
    },
    workingDir: process.cwd(),
    stopGraceMs: config.stopGraceMs,
    freeMemoryShare,
    awayMs: config.awayMs,
    flashBootMs: config.flashBootMs,
    hasHandler: (directory) => handlerCommand(directory) !== undefined,
    ...(engine ? { imageComplaint: engine.imageComplaint } : {}),
  };
}
