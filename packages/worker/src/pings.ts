import type { Connection } from "./connection.js";
import { limits } from "./limits.js";
import { type Settings, withParameters } from "./settings.js";
import { version } from "./version.js";

interface Parts {
  readonly settings: Settings;
  readonly connection: Connection;
  /** The jobs that this worker holds: running, or with a result that the server doesn't have yet. */
  heldIds(): string[];
  onRefused(): void;
}

/** Tells the server every few seconds that this worker lives, and what it holds. Returns the way to stop. */
export function startPings({ settings, connection, heldIds, onRefused }: Parts): () => void {
  const { pingUrl, pingIntervalMs } = settings;
  if (!pingUrl) return () => {};
  let isOpen = false;
  let refused = 0;
  const ping = async () => {
    if (isOpen) return;
    isOpen = true;
    const ids = heldIds();
    const url = withParameters(pingUrl, {
      ...(ids.length > 0 && { job_id: ids.join(",") }),
      runpod_version: `millrace-${version}`,
    });
    const reply = await connection.call("GET", url, { silenceMaxMs: pingIntervalMs * 2 });
    isOpen = false;
    refused = reply.status === 401 ? refused + 1 : 0;
    if (refused === limits.refusedPingsMax) onRefused();
  };
  const timer = setInterval(ping, pingIntervalMs);
  timer.unref();
  return () => clearInterval(timer);
}
