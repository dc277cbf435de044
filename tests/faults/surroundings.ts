import type { ActLog } from "./acts.js";
import type { Fleet } from "./fleet.js";
import type { Ledger } from "./ledger.js";
import type { Random } from "./random.js";
import type { RunJournal } from "./run-journal.js";
import type { Stage } from "./scene.js";

/** The parties that a villain can reach, and the log of its acts. */
export interface Surroundings {
  readonly fleet: Fleet;
  readonly stages: readonly Stage[];
  readonly random: Random;
  readonly ledger: Ledger;
  readonly journal: RunJournal;
  readonly acts: ActLog;
}
