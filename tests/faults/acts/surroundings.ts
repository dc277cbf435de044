import type { Ledger } from "../audit/ledger.js";
import type { RunJournal } from "../audit/run-journal.js";
import type { Fleet } from "../campaign/fleet.js";
import type { Random } from "../random.js";
import type { Stage } from "../scene.js";
import type { ActLog } from "./acts.js";

/** The parties that a villain can reach, and the log of its acts. */
export interface Surroundings {
  readonly fleet: Fleet;
  readonly stages: readonly Stage[];
  readonly random: Random;
  readonly ledger: Ledger;
  readonly journal: RunJournal;
  readonly acts: ActLog;
}
