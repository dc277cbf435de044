import type { Random } from "../faults/random.js";
import type { Timeline } from "./clock.js";
import type { Server } from "./server.js";

/** The parts of the world that a worker double uses. */
export interface WorkerWorld {
  readonly timeline: Timeline;
  /** Time on the wire, which passes even if a worker does not run. */
  readonly wire: Timeline;
  readonly random: Random;
  /** Whether nothing fails from now on. */
  readonly isCalm: () => boolean;
  readonly diesAtStart: () => boolean;
  ask<T>(operation: (server: Server) => Promise<T>): Promise<T>;
  note(line: string): void;
  /** Reports the end of the process. */
  end(code: number): void;
}
