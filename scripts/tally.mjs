// Counts what a run of the tests reports. Files that failed beside others are run once more, alone: a test that fails
// then has failed, and one that passes is named, so that nobody overlooks that it depends on how busy the machine is.
import { relative } from "node:path";
import { root } from "./set-up.mjs";

/** More failed files than this are no accident, and are not run again. */
const filesAgainMax = 6;

/** Counts a report. A failure outside the tests (a file that does not load, a stray error) counts as a failed test. */
export function tallyOf(code, report) {
  if (report === undefined)
    return { passed: 0, failures: ["The tests did not finish."], skipped: 0, failedFiles: [], passedIn: {} };
  const { numPassedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(report);
  const suites = testResults.filter((suite) => suite.status === "failed");
  const failures = suites.flatMap(failuresOf);
  if (code !== 0 && failures.length === 0) failures.push(`No test failed, but the run ended with exit code ${code}.`);
  return {
    passed: numPassedTests,
    failures,
    skipped: numPendingTests + numTodoTests,
    failedFiles: [...new Set(suites.map(({ name }) => relative(root, name)))],
    passedIn: Object.fromEntries(testResults.map((suite) => [relative(root, suite.name), passedOf(suite)])),
  };
}

const passedOf = ({ assertionResults }) => assertionResults.filter(({ status }) => status === "passed").length;

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

/** What two runs say together, the second of them of the files that failed in the first. */
export function together(first, second) {
  const again = new Set(first.failedFiles);
  const passedBefore = Object.entries(first.passedIn).filter(([file]) => !again.has(file));
  const stillFailed = new Set(second.failedFiles);
  const isOver = (line) => [...again].some((file) => line.includes(` ${file}:`) && !stillFailed.has(file));
  return {
    passed: passedBefore.reduce((sum, [, count]) => sum + count, 0) + second.passed,
    failures: second.failures,
    skipped: first.skipped,
    onlyAlone: second.failures.length > 0 && stillFailed.size === 0 ? [] : first.failures.filter(isOver),
  };
}
