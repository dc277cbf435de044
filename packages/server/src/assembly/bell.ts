import type { Bell, Topic } from "../bell.js";
import { localBell } from "../bells/local.js";
import { postgresBell, ServerTaken } from "../bells/postgres.js";
import type { Clock } from "../clock.js";
import type { Config } from "../config.js";
import { StartError } from "../host/data-directory.js";
import { limits } from "../limits/index.js";
import type { TakeLine } from "../lines/take-line.js";
import type { Registry } from "../memory/registry.js";

/** Whether other servers use the same database now. */
export const hasOthers = (registry: Registry, serverNo: number, now: number): boolean =>
  registry.servers.some(({ no, seenAt }) => no !== serverNo && seenAt > now - limits.hostSilenceMs);

/**
 * Whether a worker that asks this server may take the jobs that a ring announces. If only closed workers ask, other
 * servers must be told.
 */
export const isServedHere = (lines: ReadonlyMap<number, Pick<TakeLine, "canServe">>, topic: Topic): boolean =>
  lines.get(Number(/^queue:(\d+)$/.exec(topic)?.[1]))?.canServe ?? false;

interface Hearing {
  readonly server: { readonly no: number; readonly id: string };
  readonly registry: Registry;
  readonly clock: Clock;
  readonly lines: ReadonlyMap<number, TakeLine>;
}

/** Opens the bell of this process, or of all servers on one database. Throws a {@link StartError}. */
export async function openBell({ databaseUrl, dataDir }: Config, hearing: Hearing): Promise<Bell> {
  if (databaseUrl === undefined) return localBell();
  const { server, registry, clock, lines } = hearing;
  try {
    return await postgresBell({
      url: databaseUrl,
      serverId: server.id,
      isAlone: () => !hasOthers(registry, server.no, clock.now()),
      isServedHere: (topic) => isServedHere(lines, topic),
      refresh: () => registry.refresh(),
    });
  } catch (error) {
    if (error instanceof ServerTaken) {
      throw new StartError(
        `Another server with the identity of ${dataDir} uses the database: stop it, or delete the file host in the copy.`,
      );
    }
    throw new StartError(
      `The database was lost while the service started (${(error as Error).message}): start it again.`,
    );
  }
}
