/** One possible act. It is over at once, or when its promise resolves; other acts go on meanwhile. */
export interface Deed {
  /** How often it is chosen, relative to the others. */
  readonly weight: number;
  /** Whether a server is away or not listening during the act. */
  readonly hidesLosses?: true;
  /** Whether the act must happen at least once. */
  readonly isSure?: true;
  readonly act: () => unknown;
}
