/** The contract: bounds what a directory may hold, by the file system that it lies on. */
export interface Quota {
  /** By what it bounds, in words; undefined where it bounds nothing. */
  readonly by: string | undefined;
  /** Makes a directory that can be bounded, where there is none; only its owner may enter it. */
  make(path: string): Promise<void>;
  /**
   * Bounds what may be below a directory to `bytes`, whoever writes it; 0 lifts the bound. What is there already stays, and
   * counts where the file system can tell. Answers why it could not, in a sentence; undefined where it is bounded.
   */
  bound(path: string, bytes: number): Promise<string | undefined>;
  /** Removes a directory with all that it holds, and its bound; one that is not there is removed. */
  remove(path: string): Promise<void>;
}
