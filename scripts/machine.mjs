// What tests and benchmarks need from the machine: Debian packages, installed if missing.
import { locked, run, SetUpFailure, withProgress } from "./set-up.mjs";

/**
 * Installs missing packages. A need is a command that succeeds if it is installed, and the Debian packages that provide
 * it; `who` begins the sentence for a user who may not install them.
 */
export async function installMachineNeeds(who, needs) {
  if ((await missing(needs)).length === 0) return;
  await locked(async () => {
    const packages = await missing(needs);
    if (packages.length === 0) return;
    const names = packages.join(" ");
    const prefix = await administrator();
    if (prefix === undefined) {
      throw new SetUpFailure(`${who} need these Debian packages, which only root can install: ${names}`);
    }
    const aptGet = (...args) => run(...split([...prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", ...args]));
    const { code, output } = await withProgress(`Installing ${names}`, async () => {
      // One of several package sources may be broken; whether it was needed shows in the install.
      const update = await aptGet("update", "-q");
      const args = ["install", "-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", ...packages];
      const install = await aptGet(...args);
      return { code: install.code, output: `${update.output}${install.output}` };
    });
    if (code !== 0) throw new SetUpFailure(`apt-get could not install ${names}:`, output);
    const still = await missing(needs);
    if (still.length > 0) throw new SetUpFailure(`Installed, but still not found on the PATH: ${still.join(" ")}`);
  });
}

async function missing(needs) {
  const packages = [];
  for (const { probe, debian } of needs) if (!(await succeeds(probe))) packages.push(...debian.split(" "));
  return packages;
}

/** The prefix of a command to be run as root; undefined if this user may not, or there is no apt-get. */
async function administrator() {
  if (!(await succeeds(["apt-get", "--version"]))) return undefined;
  if (process.getuid?.() === 0) return [];
  return (await succeeds(["sudo", "-n", "true"])) ? ["sudo", "-n"] : undefined;
}

async function succeeds(words) {
  return (await run(...split(words))).code === 0;
}

function split([command, ...args]) {
  return [command, args];
}
