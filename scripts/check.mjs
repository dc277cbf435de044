// `npm run check`: types, lint, format and layering; one line each, exit code 1 if any of them fails.
import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { bin, installPackages, main, root, run } from "./set-up.mjs";

const colors = `--colors=${process.stdout.isTTY ? "force" : "off"}`;
const layering = ["layering", "tree", "time-sources"].map((name) => `packages/server/src/${name}.test.ts`);
const checks = [
  { name: "build", command: "tsc", args: ["-b"] },
  { name: "types of tests", command: "tsc", args: ["-p", "tsconfig.tests.json"] },
  { name: "lint and format", command: "biome", args: ["ci", colors] },
  { name: "reference pages", command: process.execPath, args: [join(root, "scripts/docs.mjs"), "--check"] },
  { name: "layering", command: "vitest", args: ["run", ...layering], needs: layering[0] },
];

await main(async () => {
  await installPackages();
  let failed = 0;
  for (const { name, command, args, needs } of checks) {
    if (needs !== undefined && !existsSync(join(root, needs))) continue;
    const began = Date.now();
    const { code, output } = await run(isAbsolute(command) ? command : join(bin, command), args, {
      env: { ...process.env, NODE_ENV: "test" },
    });
    console.log(`${code === 0 ? "ok    " : "FAILED"} ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    if (code === 0) continue;
    failed += 1;
    console.log(output.trimEnd());
  }
  return failed === 0 ? 0 : 1;
});
