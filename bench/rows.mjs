// The rows, in the order of the table.
import { row as balanced } from "./rows/balanced.mjs";
import { row as billing } from "./rows/billing.mjs";
import { row as cleanup } from "./rows/cleanup.mjs";
import { row as cluster } from "./rows/cluster.mjs";
import { row as cold } from "./rows/cold.mjs";
import { row as dashboard } from "./rows/dashboard.mjs";
import { row as full } from "./rows/full.mjs";
import { row as idle } from "./rows/idle.mjs";
import { row as kept } from "./rows/kept.mjs";
import { row as large } from "./rows/large.mjs";
import { row as restart } from "./rows/restart.mjs";
import { row as resume } from "./rows/resume.mjs";
import { row as run } from "./rows/run.mjs";
import { row as runsync } from "./rows/runsync.mjs";
import { row as servers } from "./rows/servers.mjs";
import { row as status } from "./rows/status.mjs";
import { row as stream } from "./rows/stream.mjs";
import { row as token } from "./rows/token.mjs";
import { row as whole } from "./rows/whole.mjs";
import { row as wholePg } from "./rows/whole-pg.mjs";

export const rows = [
  run,
  whole,
  wholePg,
  runsync,
  status,
  full,
  large,
  idle,
  kept,
  billing,
  cleanup,
  restart,
  stream,
  token,
  servers,
  cold,
  balanced,
  resume,
  dashboard,
  cluster,
];
