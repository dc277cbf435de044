// `npm test`, `test:fast`, `test:machine`: prepares the clone and the machine, runs the tests of that gear, and ends
// with the line `N passed, N failed`.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crowds, filesOf, needs, needsOf, testFiles } from "./gears.mjs";
import { underWay } from "./kubernetes/go.mjs";
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
import { filesAgain, tallyOf, testsAgain, together } from "./tally.mjs";

/** The stock Python SDKs, against which compatibility is tested, and the fuzzer of the OpenAPI documents. */
const pythonPackages = ["runpod==1.12.0", "openai==3.54.0", "schemathesis==4.32.5"];
const venv = join(cache, "venv");
/** Clients that do not go together with those packages. */
const newerPackages = ["runpod==2.0.0rc2", "runpod-flash==1.21.0", "langchain-runpod==0.2.0"];
const newerVenv = join(cache, "newer-venv");

/** Stock clients that are programs of their own, apart from the packages of this repository. */
const npmClients = [
  ...["@runpod/mcp-server@4.0.0", "mcp-server-3@npm:@runpod/mcp-server@3.4.0"],
  ...["@runpod/ai-sdk-provider@1.4.0", "ai@7.0.173"],
];
const clients = join(cache, "clients");

const usage = `Usage: npm test [-- path …]             the tests that need no separate machine
       npm run test:fast [-- path …]    only the tests that need nothing but Node.js
       npm run test:machine [-- path …] containers, clusters, fuzzing, floods, lost servers, power cuts, deployment

With paths, or parts of paths, exactly the matching test files run, whatever their kind. Missing packages that these
files need are installed first, if this user may install them. The last line is \`N passed, N failed\`. In a whole
run, files that fail are run once more, alone; tests that pass only then are named.

Exit codes: 0 all passed · 1 some failed, were skipped in a whole run, or could not be run · 2 unknown option or path`;

const [gear, ...words] = process.argv.slice(2);
const option = words.find((word) => word.startsWith("-"));
const files =
  words.length > 0 ? testFiles().filter((file) => words.some((word) => file.includes(word))) : filesOf(gear);

if (option === "--help" || option === "-h") console.log(usage);
else if (option !== undefined || files.length === 0) {
  console.error(
    option === undefined ? `No test file's path contains ${words.join(" or ")}.` : `Unknown option ${option}.`,
  );
  console.error("`npm test -- --help` lists the options.");
  process.exitCode = 2;
} else await main(test);

async function test() {
  await installPackages();
  await build();
  const wanted = new Set(files.flatMap((file) => [...needsOf(file)]));
  await installMachineNeeds(
    "These tests",
    [...wanted].flatMap((need) => needs[need]),
  );
  if (wanted.has("kubernetes")) beginBuilding(join(import.meta.dirname, "kubernetes/build.mjs"));
  await installClients([
    ...(wanted.has("python") ? [pythonClients(venv, pythonPackages)] : []),
    ...(wanted.has("newerPython") ? [pythonClients(newerVenv, newerPackages)] : []),
    ...(wanted.has("clients") ? [jsClients()] : []),
  ]);
  const { passed, failures, skipped, onlyAlone } = await runTests();
  const failed = failures.length;
  const mustNotSkip = skipped > 0 && words.length === 0;
  if (mustNotSkip) failures.push(`${skipped} skipped or marked todo: in a full run every test must run.`);
  for (const line of onlyAlone) console.log(`PASSED ONLY WHEN RUN AGAIN, ALONE: ${line}`);
  for (const failure of failures) console.log(failure);
  writeFileSync(join(cache, `tally-${gear}.json`), JSON.stringify({ passed, failed, failures, onlyAlone }));
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 && !mustNotSkip ? 0 : 1;
}

/** Builds what some tests need beside those that do not, which takes minutes the first time; those tests wait for it. */
function beginBuilding(script) {
  process.env[underWay] = script;
  void run(process.execPath, [script]);
}

// ---- Stock clients

/** Installs the clients that have changed since the last time, in parallel: much of that is waiting. */
async function installClients(all) {
  const lacking = async () =>
    (await Promise.all(all.map(async (some) => ((await some.isThere()) ? [] : [some])))).flat();
  if ((await lacking()).length === 0) return;
  await locked(async () => {
    const some = await lacking();
    if (some.length === 0) return;
    const words = "Installing the stock clients that these tests speak to";
    const results = await withProgress(words, () => Promise.all(some.map(({ install }) => install())));
    const failures = results.flatMap(({ code, output }, n) => (code === 0 ? [] : [`${some[n].names}: ${output}`]));
    if (failures.length > 0)
      throw new SetUpFailure("The stock clients for the tests could not be installed:", failures.join("\n"));
  });
}

/** Packages of Python in an environment of their own. */
function pythonClients(folder, packages) {
  const stamp = join(folder, ".millrace-stamp");
  const wanted = async () => {
    const python = await run("python3", ["-c", "import sys; print(sys.base_prefix, sys.version)"]);
    // A virtual environment holds absolute paths: a clone that was moved needs a new one.
    return [folder, python.output.trim(), ...packages].join("\n");
  };
  return {
    names: packages.join(", "),
    isThere: async () => readText(stamp) === (await wanted()),
    async install() {
      rmSync(folder, { recursive: true, force: true });
      const made = await run("python3", ["-m", "venv", folder]);
      if (made.code !== 0) return made;
      const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...packages];
      const installed = await run(join(folder, "bin", "python"), pip);
      if (installed.code === 0) writeFileSync(stamp, await wanted());
      return installed;
    },
  };
}

/** Packages of npm in a folder of their own. */
function jsClients() {
  const stamp = join(clients, ".millrace-stamp");
  return {
    names: npmClients.join(", "),
    isThere: () => readText(stamp) === npmClients.join("\n"),
    async install() {
      rmSync(clients, { recursive: true, force: true });
      mkdirSync(clients, { recursive: true });
      writeFileSync(join(clients, "package.json"), '{ "private": true }\n'); // otherwise npm looks for one further up
      const args = ["install", "--prefix", clients, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
      const installed = await run("npm", [...args, ...npmClients]);
      if (installed.code === 0) writeFileSync(stamp, npmClients.join("\n"));
      return installed;
    },
  };
}

// ---- The tests

async function runTests() {
  const first = await runFiles(files);
  const again = words.length === 0 ? filesAgain(first) : [];
  if (again.length === 0) return { ...first, onlyAlone: [] };
  console.log(`Running what failed once more, alone: ${again.join(" ")}`);
  // what judges times fails most often, and takes longest: its failed tests are enough
  const timed = again.filter((file) => crowds.includes(file));
  const pattern = testsAgain(first, timed);
  const named = pattern === undefined ? [] : timed;
  const alone = ["--maxWorkers=1", "--no-file-parallelism"];
  const later = [];
  if (named.length > 0) later.push(await runFiles(named, [...alone, `--testNamePattern=${pattern}`]));
  const whole = again.filter((file) => !named.includes(file));
  if (whole.length > 0) later.push(await runFiles(whole, alone));
  return together(first, ...later);
}

async function runFiles(some, options = []) {
  mkdirSync(cache, { recursive: true });
  const file = join(cache, `vitest-${process.pid}.json`);
  // a person at a terminal sees each file; a log has only the failures
  const told = process.stdout.isTTY ? "default" : "minimal";
  const reporters = [`--reporter=${told}`, "--reporter=json", `--outputFile.json=${file}`];
  const env = {
    ...process.env,
    NODE_ENV: "test",
    MILLRACE_TEST_VENV: venv,
    MILLRACE_TEST_NEWER_VENV: newerVenv,
    MILLRACE_TEST_CLIENTS: clients,
  };
  const { code } = await run(join(bin, "vitest"), ["run", ...reporters, ...options, ...some], {
    env,
    stdio: ["ignore", "inherit", "inherit"],
  });
  const report = readText(file);
  if (existsSync(file)) renameSync(file, join(cache, some === files ? "vitest.json" : "vitest-again.json"));
  return tallyOf(code, report);
}
