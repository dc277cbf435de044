export interface Tally {
  readonly passed: number;
  readonly failures: readonly string[];
  readonly skipped: number;
  readonly failedFiles: readonly string[];
  readonly passedIn: Readonly<Record<string, number>>;
}
export function tallyOf(code: number, report: string | undefined): Tally;
export function filesAgain(tally: Tally): readonly string[];
export function together(
  first: Tally,
  second: Tally,
): {
  readonly passed: number;
  readonly failures: readonly string[];
  readonly skipped: number;
  readonly onlyAlone: readonly string[];
};
