/** The disk has failed: its content is unknown, and the process must end. */
export const isFatal = (error: unknown): boolean =>
  error instanceof Error && /disk I\/O error|disk image is malformed/i.test(error.message);

/** Another connection holds the lock. */
export const isLocked = (error: unknown): error is Error =>
  error instanceof Error && /database (table )?is locked|SQLITE_(BUSY|LOCKED)/i.test(error.message);

export const isFull = (error: unknown): boolean =>
  error instanceof Error && /database or disk is full|SQLITE_FULL/i.test(error.message);
