// `npm test`: makes the clone and the machine ready, runs the tests, and ends with the line `N passed, N failed`.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { installMachineNeeds } from "./machine.mjs";
import {
  bin,
  build,
  cache,
  installPackages,
  locked,
  main,
  readText,
  run,
  SetUpFailure,
  withProgress,
} from "./set-up.mjs";

/** What the tests need of the machine: a command that succeeds where it is there, and the Debian package that brings it. */
const machineNeeds = [
  { probe: ["python3", "--version"], debian: "python3" },
  { probe: ["python3", "-c", "import venv, ensurepip"], debian: "python3-venv" },
  { probe: ["sh", "-c", "ls /usr/lib/postgresql/*/bin/initdb"], debian: "postgresql" },
  {
    probe: ["sh", "-c", "echo 'int main(void){return 0;}' | gcc -shared -fPIC -x c - -o /dev/null"],
    debian: "gcc libc6-dev",
  },
  // it lies beside what only root finds
  { probe: ["sh", "-c", "PATH=$PATH:/usr/sbin nginx -v"], debian: "nginx" },
  { probe: ["sh", "-c", "PATH=$PATH:/usr/sbin:/sbin mkfs.btrfs --version"], debian: "btrfs-progs" },
  { probe: ["faketime", "--version"], debian: "faketime" },
  // its command line is the package's own: another one that is found first may not fit its engine
  { probe: ["sh", "-c", "/usr/bin/docker --version && PATH=$PATH:/usr/sbin dockerd --version"], debian: "docker.io" },
  { probe: ["sh", "-c", "PATH=$PATH:/usr/sbin:/sbin ip -V"], debian: "iproute2" },
];

/** The stock Python SDKs, against which compatibility is tested, and the fuzzer of the OpenAPI documents. */
const pythonPackages = ["runpod==1.12.0", "openai==3.54.0", "schemathesis==4.32.5"];
const venv = join(cache, "venv");

await main(async () => {
  await installPackages();
  await build();
  await installMachineNeeds("The tests", machineNeeds);
  await makeVenv();
  const filters = process.argv.slice(2);
  const { passed, failed, skipped, isGreen } = await runTests(filters);
  const mustNotSkip = skipped > 0 && filters.length === 0;
  if (mustNotSkip) console.log(`${skipped} skipped or left to do: in a whole run every test must run.`);
  console.log(`${passed} passed, ${failed} failed`);
  return isGreen && !mustNotSkip ? 0 : 1;
});

// ---- Python

async function makeVenv() {
  const stamp = join(venv, ".millrace-stamp");
  const python = await run("python3", ["-c", "import sys; print(sys.base_prefix, sys.version)"]);
  // A virtual environment holds absolute paths: a clone that was moved needs a new one.
  const wanted = [venv, python.output.trim(), ...pythonPackages].join("\n");
  if (readText(stamp) === wanted) return;
  await locked(async () => {
    if (readText(stamp) === wanted) return;
    rmSync(venv, { recursive: true, force: true });
    const words = `Making a Python environment with ${pythonPackages.join(", ")}`;
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...pythonPackages];
    const { code, output } = await withProgress(words, async () => {
      const made = await run("python3", ["-m", "venv", venv]);
      return made.code === 0 ? run(join(venv, "bin", "python"), pip) : made;
    });
    if (code !== 0) throw new SetUpFailure("The Python environment for the tests could not be made:", output);
    writeFileSync(stamp, wanted);
  });
}

// ---- The tests

async function runTests(filters) {
  mkdirSync(cache, { recursive: true });
  const file = join(cache, `vitest-${process.pid}.json`);
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
  const env = { ...process.env, NODE_ENV: "test", MILLRACE_TEST_VENV: venv };
  const { code } = await run(join(bin, "vitest"), ["run", ...reporters, ...filters], {
    env,
    stdio: ["ignore", "inherit", "inherit"],
  });
  const report = readText(file);
  if (existsSync(file)) renameSync(file, join(cache, "vitest.json"));
  return tally(code, report);
}

/** Counts a report. A run that went wrong beside its tests (a file that does not load, a stray error) counts as a failure. */
function tally(code, report) {
  if (report === undefined) {
    console.log("The tests did not run to their end.");
    return { passed: 0, failed: 1, skipped: 0, isGreen: false };
  }
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(report);
  const broken = testResults.filter(
    (suite) => suite.status === "failed" && suite.assertionResults.every((test) => test.status !== "failed"),
  );
  for (const suite of broken) console.log(`Failed outside its tests: ${suite.name}`);
  const known = numFailedTests + broken.length;
  const isGreen = code === 0 && known === 0;
  if (!isGreen && known === 0) console.log(`No test failed, but the run ended with exit code ${code}.`);
  return {
    passed: numPassedTests,
    failed: isGreen ? 0 : Math.max(known, 1),
    skipped: numPendingTests + numTodoTests,
    isGreen,
  };
}
