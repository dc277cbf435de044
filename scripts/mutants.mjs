// `npm run mutants`: makes builds that break a promise, and expects a test to catch each. A harness that misses them
// proves nothing.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mutants } from "./mutants/list.mjs";
import { bin, build, cache, installPackages, main, readText, root, run, SetUpFailure } from "./set-up.mjs";

const usage = `Usage: npm run mutants [-- options] [mutant …]

Copies the sources, breaks one promise in each copy, and runs the tests on it until one fails. All mutants, or those named.

  --by suites     with the tests nearest to it, then with all of the server's, then with the fault campaign (default)
  --by campaign   with the fault campaign alone
  --list          print the mutants' names
  --help          print this

Exit codes: 0 all were caught · 1 one survived, or could not be made · 2 unknown option or mutant`;

const stores = "packages/server/src/stores";
const campaign = { paths: ["tests/faults/faults.test.ts"], exclude: [] };

/**
 * The suites that run on a mutant, in this order, until one fails. A campaign depends on timing: on its own it gets
 * three tries.
 */
const suites = {
  suites: ({ tests = stores }) => [
    { paths: [tests], exclude: [] },
    // a copy has not all of the tree that this test looks at
    { paths: ["packages/server/src"], exclude: [`${tests}/**`, "packages/server/src/tree.test.ts"] },
    campaign,
  ],
  campaign: () => [campaign, campaign, campaign],
};
const copied = ["packages", "tests", "scripts", "package.json", "vitest.config.ts"];

const names = process.argv.slice(2);
let by = "suites";
const at = names.indexOf("--by");
if (at >= 0) by = names.splice(at, 2)[1];
const unknown = names.find((name) => !["--help", "-h", "--list", ...mutants.map((each) => each.name)].includes(name));

if (unknown !== undefined || !Object.hasOwn(suites, by)) {
  console.error(`Unknown: ${unknown ?? by}; \`npm run mutants -- --help\` lists the options.`);
  process.exitCode = 2;
} else if (names.includes("--help") || names.includes("-h")) {
  console.log(usage);
} else if (names.includes("--list")) {
  for (const { name, breaks } of mutants) console.log(`${name}: ${breaks}`);
} else {
  await main(async () => {
    await installPackages();
    await build();
    const chosen = mutants.filter(({ name }) => names.length === 0 || names.includes(name));
    const rows = [];
    for (const mutant of chosen) {
      const caughtBy = await judge(mutant);
      rows.push([mutant.name, mutant.breaks, caughtBy ?? "SURVIVED"]);
      console.log(`${mutant.name}: ${caughtBy ?? "SURVIVED"}`);
    }
    console.log(`\n${table(["mutant", "what it does", "caught by"], rows)}`);
    return rows.every(([, , caughtBy]) => caughtBy !== "SURVIVED") ? 0 : 1;
  });
}

/** Names the test that catches a mutant; undefined if none does. */
async function judge(mutant) {
  const place = mkdtempSync(join(tmpdir(), "millrace-mutant-"));
  try {
    copyTo(place);
    for (const patch of mutant.patches) apply(place, mutant.name, patch);
    const tsc = await run(join(bin, "tsc"), ["-b", place]);
    if (tsc.code !== 0) throw new SetUpFailure(`The mutant '${mutant.name}' does not compile:`, tsc.output);
    for (const suite of suites[by](mutant)) {
      const failed = await firstFailure(place, mutant, suite);
      if (failed !== undefined) return failed;
    }
    return undefined;
  } finally {
    rmSync(place, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
}

/** The sources with their build. External packages are linked; our packages are the copy's own. */
function copyTo(place) {
  const tsconfigs = readdirSync(root).filter((name) => /^tsconfig.*\.json$/.test(name));
  for (const name of [...copied, ...tsconfigs])
    cpSync(join(root, name), join(place, name), { recursive: true, preserveTimestamps: true });
  mkdirSync(join(place, "node_modules/@millrace"), { recursive: true });
  for (const name of readdirSync(join(root, "node_modules"))) {
    if (name !== "@millrace") symlinkSync(join(root, "node_modules", name), join(place, "node_modules", name));
  }
  for (const name of readdirSync(join(place, "packages")))
    symlinkSync(join(place, "packages", name), join(place, "node_modules/@millrace", name));
}

/** Replaces a text that occurs exactly once in a file. */
function apply(place, name, { file, find, replace }) {
  const path = join(place, "packages/server/src", file);
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const count = text.split(find).length - 1;
  if (count !== 1)
    throw new SetUpFailure(`The mutant '${name}' must be updated: its text occurs ${count} times in ${file}:\n${find}`);
  writeFileSync(
    path,
    text.replace(find, () => replace),
  );
}

async function firstFailure(place, { database = "sqlite" }, { paths, exclude }) {
  const report = join(place, "report.json");
  rmSync(report, { force: true });
  const env = {
    ...process.env,
    NODE_ENV: "test",
    MILLRACE_TEST_DATABASE: database,
    MILLRACE_TEST_VENV: process.env.MILLRACE_TEST_VENV ?? join(cache, "venv"),
  };
  const excludes = exclude.map((pattern) => `--exclude=${pattern}`);
  const args = ["run", "--root", place, "--bail=1", "--reporter=json", `--outputFile=${report}`, ...excludes, ...paths];
  const { code, output } = await run(join(place, "node_modules/.bin/vitest"), args, { env });
  if (code === 0) return undefined;
  const results = JSON.parse(readText(report) ?? '{"testResults":[]}').testResults;
  for (const { name, assertionResults, message } of results) {
    const failed = assertionResults.find(({ status }) => status === "failed");
    const file = name.slice(place.length + 1);
    if (failed) return `${file}: ${failed.fullName}${paths === campaign.paths ? faultIn(failed.failureMessages) : ""}`;
    if (message) return `${file}: ${message.split("\n")[0]}`;
  }
  throw new SetUpFailure("The tests of a mutant could not be run:", output);
}

/** The first fault that a campaign reports, without ids. */
function faultIn([message = ""]) {
  const [, fault] = /^AssertionError: (.+?)(: expected \{|$)/m.exec(message) ?? [];
  return fault === undefined
    ? ""
    : ` (${fault.replaceAll(/\b(r\d+-c\d+-\d+|[0-9a-f-]{36}-u1)\b/g, "…").slice(0, 100)})`;
}

function table(head, rows) {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column].length)));
  const line = (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}
