/**
 * What common images' entry points do as root: change files' and their own user, signal children, listen on port 80.
 */
export const keptCapabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID", "KILL", "NET_BIND_SERVICE"];

/** The registry of an image: the first part of its name if that can be a host. */
export function registryOf(image: string): string {
  const [first = "", ...rest] = image.split("/");
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === "localhost");
  return isHost ? first : "https://index.docker.io/v1/";
}
