/** What the command line's exit code says. */
export const exits = {
  done: 0,
  /** The job or the check failed. */
  failed: 1,
  usage: 2,
  refused: 3,
  unreachable: 4,
  interrupted: 130,
} as const;
export type Exit = (typeof exits)[keyof typeof exits];

/** Ends a command: one sentence with its cause, and a command that helps. */
export class Failure extends Error {
  readonly exit: Exit;
  readonly hint: string | undefined;
  /** Whether the same call may succeed a little later. */
  readonly isForNow: boolean;
  /** The HTTP status of a refusal. */
  readonly status: number | undefined;
  constructor(exit: Exit, message: string, hint?: string, isForNow = false, status?: number) {
    super(message);
    this.exit = exit;
    this.hint = hint;
    this.isForNow = isForNow;
    this.status = status;
  }
}

/** Adds what helps to a refusal of the server, which knows nothing of commands. */
export async function hinted<T>(asked: Promise<T>, hint: string): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof Failure) || error.exit !== exits.refused || error.hint !== undefined) throw error;
    throw new Failure(error.exit, error.message, hint, error.isForNow, error.status);
  }
}
