// Before `npm pack` makes a package: everything is built, and the license and the commit lie in the package's folder.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build, installPackages, main, root } from "./set-up.mjs";

const folder = process.cwd();
await main(async () => {
  await installPackages();
  await build();
  copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  if (folder === join(root, "packages/server") && existsSync(join(root, ".git")))
    writeFileSync(
      join(folder, "dist/commit.json"),
      JSON.stringify(execFileSync("git", ["rev-parse", "HEAD"], { cwd: root, encoding: "utf8" }).trim()),
    );
  return 0;
});
