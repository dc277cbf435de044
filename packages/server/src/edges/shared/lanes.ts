import type { IncomingMessage } from "node:http";
import { isVisible } from "../../domain/access/key.js";
import { hasSecret, knownKey } from "../../operations/access/authenticate.js";
import type { Needs } from "../../operations/needs.js";
import type { Lane } from "../../turns.js";

const endpointPath = /^\/(?:sdk\/)?(?:v2|lb)\/([a-z0-9]+)(?:\/[a-z-]+\/([a-z0-9-]+))?/;

/**
 * The lane in which a request waits its turn while there are too many: one per key owner and endpoint. Looked up in
 * memory alone, so a key that this server does not know yet counts as no key.
 */
export function laneOf(needs: Needs<"registry" | "vault" | "clock">, { url = "", headers }: IncomingMessage): Lane {
  if (url === "/healthz" || url === "/readyz") return ["health"];
  const { registry } = needs;
  const [path = "", endpointId = "", workerId = ""] = endpointPath.exec(url) ?? [];
  const endpoint = endpointId === "" ? undefined : registry.endpoint(endpointId);
  const key = knownKey(needs, headers.authorization);
  if (key) return isVisible(key, endpoint) ? [key.ownerNo, endpoint.no] : [key.ownerNo];
  const worker = endpoint && path !== "" ? registry.worker(workerId) : undefined;
  if (endpoint === undefined || worker?.row.endpointNo !== endpoint.no) return ["nobody"];
  const token = new URLSearchParams(url.split("?")[1]).get("token");
  return hasSecret(needs, worker, headers.authorization, token) ? [endpoint.ownerNo, endpoint.no] : ["nobody"];
}
