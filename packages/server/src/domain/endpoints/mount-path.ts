import { hasControls } from "../plain-text.js";

/**
 * Directories of the kernel and the engine: a container with something mounted there does not start, or escapes its
 * sandbox.
 */
const systems = ["/proc", "/sys", "/dev"];

/** Whether a volume can be mounted at this path in a container. */
export function isMountPath(path: string): boolean {
  if (!path.startsWith("/") || hasControls(path)) return false;
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.length === 0 || parts.includes("..")) return false;
  return !systems.includes(`/${parts[0]}`);
}
