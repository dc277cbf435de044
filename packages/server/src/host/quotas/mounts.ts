/** A mounted file system. */
export interface Mount {
  readonly point: string;
  readonly type: string;
  /** Whether it has project quotas. */
  readonly hasProjects: boolean;
}

/** The file system of a path without links, from the text of `/proc/self/mountinfo`. */
export function mountOf(mountinfo: string, path: string): Mount | undefined {
  let found: Mount | undefined;
  for (const line of mountinfo.split("\n")) {
    const mount = readMount(line);
    // of mounts at the same point, the last one is on top
    if (mount && holds(mount.point, path) && mount.point.length >= (found?.point.length ?? 0)) found = mount;
  }
  return found;
}

const holds = (point: string, path: string) => point === "/" || path === point || path.startsWith(`${point}/`);

/** `36 35 98:0 /root /point options [tags] - type source superoptions` (proc(5)). */
function readMount(line: string): Mount | undefined {
  const [before = "", after = ""] = line.split(" - ");
  const point = before.split(" ")[4];
  const [type, , options = ""] = after.split(" ");
  if (point === undefined || type === undefined) return undefined;
  const hasProjects = options.split(",").some((option) => option === "prjquota" || option === "pquota");
  return {
    point: point.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8))),
    type,
    hasProjects,
  };
}
