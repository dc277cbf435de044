/** The contract of a quota: limits the size of directories, by means of their file system. */
export interface Quota {
  /** What enforces the limits, in words; undefined if nothing does. */
  readonly by: string | undefined;
  /** Makes a directory that can be limited, if it is missing; only its owner may enter it. */
  make(path: string): Promise<void>;
  /**
   * Limits the size of a directory to `bytes`, whoever writes there; 0 lifts the limit. Existing files stay, and count
   * if the file system can tell. Resolves with the reason, in a sentence, if it could not; otherwise undefined.
   */
  bound(path: string, bytes: number): Promise<string | undefined>;
  /** Removes a directory, its contents and its limit. It is no error if the directory is missing. */
  remove(path: string): Promise<void>;
}
