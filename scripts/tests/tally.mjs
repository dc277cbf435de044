// Counts what a run of the tests reports. Files that failed beside others are run once more, alone: a test that fails
// then has failed, and one that passes is named, so that nobody overlooks that it depends on how busy the machine is.
import { relative } from "node:path";
import { root } from "../set-up.mjs";

/** More failed files than this are no accident, and are not run again. */
const filesAgainMax = 6;

/** Counts a report. A failure outside the tests (a file that does not load, a stray error) counts as a failed test. */
export function tallyOf(code, report) {
  if (report === undefined)
    return {
      passed: 0,
      failures: ["The tests did not finish."],
      skipped: 0,
      failedFiles: [],
      passedTests: {},
      failedTests: {},
    };
  const { numPassedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(report);
  const suites = testResults.filter((suite) => suite.status === "failed");
  const failures = suites.flatMap(failuresOf);
  if (code !== 0 && failures.length === 0) failures.push(`No test failed, but the run ended with exit code ${code}.`);
  const named = (ended) =>
    Object.fromEntries(testResults.map((suite) => [relative(root, suite.name), testsOf(suite, ended)]));
  return {
    passed: numPassedTests,
    failures,
    skipped: numPendingTests + numTodoTests,
    failedFiles: [...new Set(suites.map(({ name }) => relative(root, name)))],
    passedTests: named("passed"),
    failedTests: named("failed"),
  };
}

/** The names of a file's tests that ended so, as Vitest's patterns see them. */
const testsOf = ({ assertionResults }, ended) =>
  assertionResults
    .filter(({ status }) => status === ended)
    .map(({ ancestorTitles, title }) => [...ancestorTitles, title].join(" > "));

/** One line for each failed test of a file, or one for the file. */
function failuresOf({ name, message, assertionResults }) {
  const file = relative(root, name);
  const short = (text) => text.trim().split("\n").slice(0, 3).join(" / ").slice(0, 400);
  const failed = assertionResults.filter((test) => test.status === "failed");
  if (failed.length === 0) return [`FAILED outside its tests: ${file}: ${short(message ?? "")}`];
  return failed.map((test) => `FAILED ${file}: ${test.fullName}: ${short(test.failureMessages[0] ?? "")}`);
}

/** The files of a whole run that are to be run again, alone; none if the failures are too many, or no file's. */
export const filesAgain = ({ failedFiles }) => (failedFiles.length <= filesAgainMax ? failedFiles : []);

/**
 * A pattern of exactly the failed tests of such files. Undefined if one of these files failed outside its tests, or in a
 * test that judges what others of its file have left: by its name it comes after all of them.
 */
export function testsAgain({ failedTests }, files) {
  const tests = files.map((file) => failedTests[file]);
  if (tests.some((names) => names.length === 0 || names.some((name) => name.includes("after all")))) return undefined;
  const escaped = tests.flat().map((name) => name.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return `^(${escaped.join("|")})$`;
}

/** What a run says together with later ones of what failed in it: whole files, or their failed tests alone. */
export function together(first, ...later) {
  const ended = (how, file) => later.flatMap((run) => run[how][file] ?? []);
  const isOver = (file) => !later.some((run) => run.failedFiles.includes(file));
  const notRun = first.failedFiles
    .filter(isOver)
    .flatMap((file) =>
      first.failedTests[file]
        .filter((test) => !ended("passedTests", file).includes(test))
        .map((test) => `FAILED ${file}: ${test}: it failed, and was not run again.`),
    );
  const failures = [...later.flatMap((run) => run.failures), ...notRun];
  const unfinished = failures.length > 0 && later.every((run) => run.failedFiles.length === 0);
  return {
    passed: first.passed + first.failedFiles.flatMap(newlyPassed).length,
    failures,
    skipped: first.skipped,
    onlyAlone: unfinished
      ? []
      : first.failures.filter((line) => first.failedFiles.some((file) => line.includes(` ${file}:`) && isOver(file))),
  };

  /** Tests of the file that have passed only now. A file that failed as it was read has none that passed before. */
  function newlyPassed(file) {
    const before = first.passedTests[file];
    return ended("passedTests", file).filter((test) => !before.includes(test));
  }
}
