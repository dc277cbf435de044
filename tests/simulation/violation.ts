/** A broken promise. */
export interface Violation {
  readonly rule: string;
  readonly sentence: string;
}

/** Stops a history at its first violation. */
export class Violated extends Error {}
