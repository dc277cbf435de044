// Before `npm pack` makes a package: everything is built, and the license lies in the package's folder.
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { build, installPackages, main, root } from "./set-up.mjs";

const folder = process.cwd();
await main(async () => {
  await installPackages();
  await build();
  copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  return 0;
});
