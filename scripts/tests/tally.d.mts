export interface Tally {
  readonly passed: number;
  readonly failures: readonly string[];
  readonly skipped: number;
  readonly failedFiles: readonly string[];
  /** By file, the full names of its tests. */
  readonly passedTests: Readonly<Record<string, readonly string[]>>;
  readonly failedTests: Readonly<Record<string, readonly string[]>>;
}
export function tallyOf(code: number, report: string | undefined): Tally;
export function filesAgain(tally: Tally): readonly string[];
export function testsAgain(tally: Tally, files: readonly string[]): string | undefined;
export function together(
  first: Tally,
  ...later: readonly Tally[]
): {
  readonly passed: number;
  readonly failures: readonly string[];
  readonly skipped: number;
  readonly onlyAlone: readonly string[];
};
