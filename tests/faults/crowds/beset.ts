import { startPostgres } from "../../../scripts/postgres.mjs";
import { makeHandler } from "../../e2e/handlers.js";
import { makeEndpoint, startServer, type TestServer } from "../../harness.js";
import { makeDatabase } from "../../servers/cluster.js";
import { watchTurns } from "../machine/turn-times.js";
import { type Bystander, startBystander } from "./bystander.js";

type Undo = () => Promise<unknown> | unknown;

/** A server without rate limits for crowds to attack, and a bystander whose requests it must serve meanwhile. */
export interface Beset {
  readonly server: TestServer;
  readonly bystander: Bystander;
  /** Ends what a file of tests has made, the last first. */
  readonly ending: { onTestFinished(undo: Undo): void };
  end(): Promise<void>;
}

export async function startBeset(database: string): Promise<Beset> {
  const undos: Undo[] = [];
  const ending = { onTestFinished: (undo: Undo) => void undos.unshift(undo) };
  const emptyDatabase = async (): Promise<string> => {
    const postgres = await startPostgres();
    ending.onTestFinished(() => postgres.end());
    return makeDatabase(postgres, "beset");
  };
  const more = database === "SQLite" ? {} : { MILLRACE_DATABASE_URL: await emptyDatabase() };
  const turns = watchTurns();
  ending.onTestFinished(() => turns.end());
  const quiet = { MILLRACE_RATE_LIMITS: "off", MILLRACE_LOG_LEVEL: "error" };
  const server = await startServer({ ...quiet, ...turns.env, ...more });
  ending.onTestFinished(() => server.end());
  const ofBystander = await makeEndpoint(server, makeHandler(ending), { workersMax: 0 });
  const bystander = await startBystander(server, ofBystander, turns);
  ending.onTestFinished(() => bystander.end());
  return {
    server,
    bystander,
    ending,
    async end() {
      for (const undo of undos) await undo();
    },
  };
}
