import { callerMutants } from "./caller-mutants.mjs";
import { managementMutants } from "./management-mutants.mjs";
import { storeMutants } from "./store-mutants.mjs";
import { workerMutants } from "./worker-mutants.mjs";

/**
 * Each mutant breaks one promise with small text changes. A `find` must occur exactly once in its file (under
 * packages/server/src): if the code has changed, the script says so, and the patch must be updated here. `tests` names
 * the folder whose tests run first (by default the stores'), `database` the database that a campaign uses (by default
 * SQLite).
 */
export const mutants = [...storeMutants, ...workerMutants, ...callerMutants, ...managementMutants];
