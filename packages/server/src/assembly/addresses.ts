import type { Config } from "../config.js";

/** A host as it stands in a URL. */
export const bracketed = (host: string): string => (host.includes(":") ? `[${host}]` : host);

/** Where what listens at this address is reached from the same machine. */
export const reachable = (host: string): string => (host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host);

/** What the other servers call this machine: the address we listen on, or the one that workers are told. */
export function hostAddress({ host, workerUrl }: Config): string {
  if (!/^(127\.|::1$|::$|0\.0\.0\.0$|localhost$)/.test(host)) return host;
  return workerUrl === undefined ? "127.0.0.1" : new URL(workerUrl).hostname.replace(/^\[|\]$/g, "");
}
