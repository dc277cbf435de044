// `npm test`, `test:fast`, `test:machine`: prepares the clone and the machine, runs the tests of that gear, and ends
// with the line `N passed, N failed`.
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { underWay } from "./kubernetes/go.mjs";
import { installMachineNeeds } from "./machine.mjs";
import { bin, build, cache, installPackages, main, readText, run } from "./set-up.mjs";
import { beginClients, clientsEnv } from "./tests/clients.mjs";
import { crowds, filesOf, needs, needsOf, testFiles } from "./tests/gears.mjs";
import { filesAgain, tallyOf, testsAgain, together } from "./tests/tally.mjs";

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
  const wanted = new Set(files.flatMap((file) => [...needsOf(file)]));
  await installMachineNeeds(
    "These tests",
    [...wanted].flatMap((need) => needs[need]),
  );
  const clientsEnd = await beginClients(wanted);
  await installPackages();
  await build();
  if (wanted.has("kubernetes")) beginBuilding(join(import.meta.dirname, "kubernetes/build.mjs"));
  const { passed, failures, skipped, onlyAlone } = await runTests();
  const clientsFailure = await clientsEnd();
  if (clientsFailure !== undefined) failures.push(clientsFailure);
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
    ...clientsEnv,
  };
  const { code } = await run(join(bin, "vitest"), ["run", ...reporters, ...options, ...some], {
    env,
    stdio: ["ignore", "inherit", "inherit"],
  });
  const report = readText(file);
  if (existsSync(file)) renameSync(file, join(cache, some === files ? "vitest.json" : "vitest-again.json"));
  return tallyOf(code, report);
}
