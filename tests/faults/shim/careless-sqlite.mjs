// Loaded before the server's code, this makes a store that does not sync its commits. The power-loss test must detect
// it.
import { DatabaseSync } from "node:sqlite";

const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (sql) {
  return exec.call(this, sql.replace("synchronous = FULL", `synchronous = ${process.env.CARELESS_SYNCHRONOUS}`));
};
