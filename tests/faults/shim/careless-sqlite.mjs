// Loaded before the server's own code, it makes a store that does not sync its commits: what the power-loss test must notice.
import Module from "node:module";

const load = Module._load;
Module._load = (name, ...rest) => {
  const loaded = load(name, ...rest);
  if (name !== "node:sqlite" && name !== "@photostructure/sqlite") return loaded;
  class CarelessDatabase extends loaded.DatabaseSync {
    exec(sql) {
      return super.exec(sql.replace("synchronous = FULL", `synchronous = ${process.env.CARELESS_SYNCHRONOUS}`));
    }
  }
  return { ...loaded, DatabaseSync: CarelessDatabase };
};
