import { expect, it } from "vitest";
import { isMountPath } from "./mount-path.js";

it.each(["/workspace", "/data/", "/a/b c/d", "/processed", "/home/dev", "/opt/sys", "/.cache"])(
  "a volume can be mounted at %j",
  (path) => expect(isMountPath(path)).toBe(true),
);

it.each([
  ...["", "/", "//", "/.", "relative", "./here", "~/x", "/a/../proc", "/..", "/a\0b", "/a\nb", "/a\u0085b"],
  ...["/proc", "/proc/", "//proc", "/./proc/self", "/sys", "/sys/fs/cgroup", "/dev", "/dev/shm"],
])("a volume cannot be mounted at %j", (path) => expect(isMountPath(path)).toBe(false));
