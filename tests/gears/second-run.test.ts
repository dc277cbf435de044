import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { filesAgain, tallyOf, testsAgain, together } from "../../scripts/tests/tally.mjs";
import { root } from "../harness.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(root, "tests/gears/.run-"));
  const write = (name: string, body: string) =>
    writeFileSync(
      join(folder, name),
      `import { existsSync, writeFileSync } from "node:fs";\nimport { describe, expect, it } from "vitest";\n${body}\n`,
    );
  const mark = JSON.stringify(join(folder, "mark"));
  write(
    "once.test.ts",
    `describe("a test", () => it("fails the first time", () => {
  const isFirst = !existsSync(${mark});
  writeFileSync(${mark}, "");
  expect(isFirst).toBe(false);
}));
it.each(["(a+b)", "c"])("passes beside it: %s", () => expect(1).toBe(1));`,
  );
  write("always.test.ts", 'it("fails each time", () => expect(1).toBe(2));');
  write("never.test.ts", 'it("passes", () => expect(1).toBe(1));');
  writeFileSync(join(folder, "vitest.config.mjs"), `export default { test: { include: ["**/*.test.ts"] } };\n`);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A real run of these files. */
function ran(...names: string[]) {
  const report = join(folder, "report.json");
  const args = ["run", `--root=${folder}`, "--reporter=json", `--outputFile=${report}`, ...names];
  const { status } = spawnSync(join(root, "node_modules/.bin/vitest"), args, { encoding: "utf8" });
  return tallyOf(status ?? 1, readFileSync(report, "utf8"));
}

describe("A second run of failed files", () => {
  it("makes a failure of the first run one of the machine's load, or a failure for good", () => {
    const first = ran();
    expect(first).toMatchObject({ passed: 3, skipped: 0 });
    expect(first.failures).toHaveLength(2);
    const again = filesAgain(first).map((file) => file.split("/").at(-1) as string);
    expect([...again].sort()).toEqual(["always.test.ts", "once.test.ts"]);
    const both = together(first, ran(...again));
    expect(both.passed).toBe(4);
    expect(both.failures).toEqual([expect.stringContaining("always.test.ts: fails each time")]);
    expect(both.onlyAlone).toEqual([expect.stringContaining("once.test.ts: a test fails the first time")]);
  });

  it("may be of the failed tests alone", () => {
    rmSync(join(folder, "mark"), { force: true });
    const first = ran("once.test.ts");
    const file = first.failedFiles[0] as string;
    expect(testsAgain(first, [file])).toBe("^(a test > fails the first time)$");
    expect(testsAgain({ ...first, failedTests: { [file]: ["is (a+b)?", "c"] } }, [file])).toBe(
      "^(is \\(a\\+b\\)\\?|c)$",
    );
    expect(testsAgain({ ...first, failedTests: { [file]: [] } }, [file])).toBeUndefined();
    expect(
      testsAgain({ ...first, failedTests: { [file]: ["c", "all > is there after all attacks"] } }, [file]),
    ).toBeUndefined();
    const second = ran("once.test.ts", `--testNamePattern=${testsAgain(first, [file])}`);
    expect(second).toMatchObject({ passed: 1, failures: [] });
    expect(together(first, second)).toMatchObject({ passed: 3, failures: [], onlyAlone: first.failures });
  });

  it("in which a failed test does not run leaves it failed", () => {
    rmSync(join(folder, "mark"), { force: true });
    const first = ran("once.test.ts");
    const both = together(first, ran("once.test.ts", "--testNamePattern=^passes"));
    expect(both).toMatchObject({
      passed: 2,
      failures: [expect.stringContaining("fails the first time")],
      onlyAlone: [],
    });
  });

  it("is not made of more than six files, nor after a run that did not finish", () => {
    const failed = (count: number) => ({
      ...tallyOf(1, undefined),
      failedFiles: Array.from({ length: count }, (_, n) => `${n}.test.ts`),
    });
    expect([filesAgain(failed(6)).length, filesAgain(failed(7)).length]).toEqual([6, 0]);
    expect(filesAgain(tallyOf(1, undefined))).toEqual([]);
    expect(tallyOf(1, undefined).failures).toEqual(["The tests did not finish."]);
  });

  it("that does not finish leaves everything failed", () => {
    const first = {
      passed: 4,
      failures: ["FAILED a.test.ts: x: y"],
      skipped: 0,
      failedFiles: ["a.test.ts"],
      passedTests: { "a.test.ts": [] },
      failedTests: { "a.test.ts": ["x"] },
    };
    expect(together(first, tallyOf(1, undefined))).toMatchObject({
      failures: ["The tests did not finish.", "FAILED a.test.ts: x: it failed, and was not run again."],
      onlyAlone: [],
    });
  });
});
