import type { Command } from "commander";
import type { Calls } from "./calls.js";
import type { Env } from "./contexts.js";
import type { Exit } from "./exit.js";
import type { Streams, Terminal } from "./output/terminal.js";

/** What a command works with. */
export interface Tools {
  readonly env: Env;
  readonly streams: Streams;
  /** Where the command is run. */
  readonly folder: string;
  /** Aborts at the first Ctrl-C. */
  readonly interrupted: AbortSignal;
  /** Says that the command ends by itself after a Ctrl-C, when it has put things in order. */
  endsItself(): void;
  /** Leaves signals to the service that this process becomes. */
  leavesSignals(): void;
  /** The terminal, as the command's options want it. */
  terminal(command: Command): Terminal;
  /** Calls of the server that the command's options name. */
  calls(command: Command): Calls;
  /** Sets the exit code of a command that has ended. */
  end(exit: Exit): void;
}
