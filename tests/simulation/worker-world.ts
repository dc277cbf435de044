import type { Random } from "../faults/random.js";
import type { Timeline } from "./clock.js";
import type { Server } from "./server.js";

/** What a worker double has of its world. */
export interface WorkerWorld {
  readonly timeline: Timeline;
  /** Time on the wire: it goes on when a worker does not. */
  readonly wire: Timeline;
  readonly random: Random;
  /** Whether all goes well from now on. */
  readonly isCalm: () => boolean;
  readonly diesAtStart: () => boolean;
  ask<T>(operation: (server: Server) => Promise<T>): Promise<T>;
  note(line: string): void;
  /** The process ends. */
  end(code: number): void;
}
