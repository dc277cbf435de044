// Loaded before the server's own code, it makes a store that does not sync its commits: what the power-loss test must notice.
import { DatabaseSync } from "node:sqlite";

const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (sql) {
  return exec.call(this, sql.replace("synchronous = FULL", `synchronous = ${process.env.CARELESS_SYNCHRONOUS}`));
};
