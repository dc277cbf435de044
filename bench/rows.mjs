// The rows, in the order of the table.
import { row as cold } from "./rows/cold.mjs";
import { row as run } from "./rows/run.mjs";
import { row as status } from "./rows/status.mjs";
import { row as whole } from "./rows/whole.mjs";

export const rows = [run, whole, status, cold];
