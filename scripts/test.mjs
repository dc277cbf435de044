// `npm test`, `test:fast`, `test:machine`: prepares the clone and the machine, runs the tests of that gear, and ends
// with the line `N passed, N failed`.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { filesOf, needs, needsOf, testFiles } from "./gears.mjs";
import { installMachineNeeds } from "./machine.mjs";
import {
  bin,
  build,
  cache,
  installPackages,
  locked,
  main,
  readText,
  root,
  run,
  SetUpFailure,
  withProgress,
} from "./set-up.mjs";

/** The stock Python SDKs, against which compatibility is tested, and the fuzzer of the OpenAPI documents. */
const pythonPackages = ["runpod==1.12.0", "openai==3.54.0", "schemathesis==4.32.5"];
const venv = join(cache, "venv");

/** Stock clients that are programs of their own, apart from the packages of this repository. */
const npmClients = ["@runpod/mcp-server@4.0.0"];
const clients = join(cache, "clients");

const usage = `Usage: npm test [-- path …]             the tests that need no separate machine
       npm run test:fast [-- path …]    only the tests that need nothing but Node.js
       npm run test:machine [-- path …] containers, fuzzing, floods, power cuts, deployment

With paths, or parts of paths, exactly the matching test files run, whatever their kind. Missing packages that these
files need are installed first, if this user may install them. The last line is \`N passed, N failed\`.

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
  if (wanted.has("python")) await makeVenv();
  if (wanted.has("clients")) await installClients();
  const { passed, failed, failures, skipped, isGreen } = await runTests();
  const mustNotSkip = skipped > 0 && words.length === 0;
  if (mustNotSkip) failures.push(`${skipped} skipped or marked todo: in a full run every test must run.`);
  for (const failure of failures) console.log(failure);
  writeFileSync(join(cache, `tally-${gear}.json`), JSON.stringify({ passed, failed, failures }));
  console.log(`${passed} passed, ${failed} failed`);
  return isGreen && !mustNotSkip ? 0 : 1;
}

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

// ---- Stock clients

async function installClients() {
  const stamp = join(clients, ".millrace-stamp");
  const wanted = npmClients.join("\n");
  if (readText(stamp) === wanted) return;
  await locked(async () => {
    if (readText(stamp) === wanted) return;
    rmSync(clients, { recursive: true, force: true });
    mkdirSync(clients, { recursive: true });
    writeFileSync(join(clients, "package.json"), '{ "private": true }\n'); // otherwise npm looks for one further up
    const args = ["install", "--prefix", clients, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    const install = () => run("npm", [...args, ...npmClients], { cwd: clients });
    const { code, output } = await withProgress(`Installing ${npmClients.join(", ")}`, install);
    if (code !== 0) throw new SetUpFailure("The stock clients for the tests could not be installed:", output);
    writeFileSync(stamp, wanted);
  });
}

// ---- The tests

async function runTests() {
  mkdirSync(cache, { recursive: true });
  const file = join(cache, `vitest-${process.pid}.json`);
  // a person at a terminal sees each file; a log has only the failures
  const told = process.stdout.isTTY ? "default" : "minimal";
  const reporters = [`--reporter=${told}`, "--reporter=json", `--outputFile.json=${file}`];
  const env = { ...process.env, NODE_ENV: "test", MILLRACE_TEST_VENV: venv, MILLRACE_TEST_CLIENTS: clients };
  const { code } = await run(join(bin, "vitest"), ["run", ...reporters, ...files], {
    env,
    stdio: ["ignore", "inherit", "inherit"],
  });
  const report = readText(file);
  if (existsSync(file)) renameSync(file, join(cache, "vitest.json"));
  return tally(code, report);
}

/** Counts a report. A failure outside the tests (a file that does not load, a stray error) counts as a failed test. */
function tally(code, report) {
  if (report === undefined)
    return { passed: 0, failed: 1, failures: ["The tests did not finish."], skipped: 0, isGreen: false };
  const { numPassedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(report);
  const failures = testResults.filter((suite) => suite.status === "failed").flatMap(failuresOf);
  if (code !== 0 && failures.length === 0) failures.push(`No test failed, but the run ended with exit code ${code}.`);
  return {
    passed: numPassedTests,
    failed: failures.length,
    failures,
    skipped: numPendingTests + numTodoTests,
    isGreen: failures.length === 0,
  };
}

/** One line for each failed test of a file, or one for the file. */
function failuresOf({ name, message, assertionResults }) {
  const file = relative(root, name);
  const short = (text) => text.trim().split("\n").slice(0, 3).join(" / ").slice(0, 400);
  const failed = assertionResults.filter((test) => test.status === "failed");
  if (failed.length === 0) return [`FAILED outside its tests: ${file}: ${short(message ?? "")}`];
  return failed.map((test) => `FAILED ${file}: ${test.fullName}: ${short(test.failureMessages[0] ?? "")}`);
}
