import { createHash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import type { Config } from "../config.js";
import type { ServerAddress } from "../domain/hosts/server.js";

/** A host as written in a URL. */
export const bracketed = (host: string): string => (host.includes(":") ? `[${host}]` : host);

/** The address, on this machine, of a server that listens on `host`. */
export const reachable = (host: string): string => (host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host);

/** The address by which other servers know this machine: the address we listen on, or the one workers are given. */
export function hostAddress({ host, workerUrl }: Pick<Config, "host" | "workerUrl">): string {
  if (!/^(127\.|::1$|::$|0\.0\.0\.0$|localhost$)/.test(host)) return host;
  return workerUrl === undefined ? "127.0.0.1" : new URL(workerUrl).hostname.replace(/^\[|\]$/g, "");
}

/**
 * The address where other servers reach this one: as set, or the one we listen on; if we listen on every address, the
 * name that workers know.
 */
export function serverAddress({ host, workerUrl, serverAddress }: Config, port: number): ServerAddress {
  const machine = machineId();
  const isEvery = host === "0.0.0.0" || host === "::";
  const at = serverAddress ?? { host: isEvery ? hostAddress({ host, workerUrl }) : host, port };
  return { ...at, ...(machine === undefined ? {} : { machine }) };
}

/** Identifies this boot of the machine, and the network that we see there (a container has a loopback of its own). */
function machineId(): string | undefined {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return createHash("sha256")
      .update(`${boot} ${readlinkSync("/proc/self/ns/net")}`)
      .digest("hex")
      .slice(0, 32);
  } catch {
    return undefined; // not Linux: loopback addresses of other servers are never called
  }
}
