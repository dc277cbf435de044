// Loaded before the server's own code, it makes a store that does not sync its commits: what the power-loss test must notice.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const [major, minor] = process.versions.node.split(".").map(Number);
const isBuiltIn = major > 22 || (major === 22 && minor >= 13);
const { DatabaseSync } = require(isBuiltIn ? "node:sqlite" : "@photostructure/sqlite");
const exec = DatabaseSync.prototype.exec;
DatabaseSync.prototype.exec = function (sql) {
  return exec.call(this, sql.replace("synchronous = FULL", `synchronous = ${process.env.CARELESS_SYNCHRONOUS}`));
};
