/** A build that breaks one promise. */
export interface Mutant {
  readonly name: string;
  readonly breaks: string;
  /** The tests nearest to it. */
  readonly tests: string;
  /** What is changed, in files of the server's sources. */
  readonly patches: readonly { readonly file: string; readonly find: string; readonly replace: string }[];
}
export const mutants: readonly Mutant[];
