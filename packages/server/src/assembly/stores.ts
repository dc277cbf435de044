import type { Clock, SystemClock } from "../clock.js";
import type { Config } from "../config.js";
import type { Emit } from "../events.js";
import { type DataDirectory, StartError } from "../host/data-directory.js";
import { limits } from "../limits/index.js";
import { aheadOf } from "../loops/share-state.js";
import type { Stores } from "../store/index.js";
import { isUnreachable, openPostgres } from "../stores/postgres/open.js";
import { openSqlite } from "../stores/sqlite/open.js";

/** What opening the stores needs besides the settings. */
interface Opening {
  readonly onFatal?: ((error: Error) => void) | undefined;
  readonly serverId: string;
  readonly clock: Clock & Partial<SystemClock>;
  readonly emit: Emit;
  readonly rings: { readonly onBack: () => void };
}

/** Opens the database of this directory, or the shared one. Throws a {@link StartError}. */
export async function openStores(config: Config, directory: DataDirectory, opening: Opening): Promise<Stores> {
  const { onFatal = () => {} } = opening;
  try {
    if (config.databaseUrl === undefined) return openSqlite({ path: directory.database, onFatal });
    return await openShared(config.databaseUrl, opening);
  } catch (error) {
    throw new StartError(error instanceof Error ? error.message : String(error));
  }
}

/** Opens the shared database and follows its clock. Waits for a database that starts along with us. */
async function openShared(url: string, { serverId, clock, emit, rings }: Opening): Promise<Stores> {
  const giveUpAt = clock.now() + limits.databaseStartMs;
  for (let tries = 1; ; tries++) {
    try {
      const stores = await openPostgres({ url, serverId, onBack: () => rings.onBack() });
      const ahead = stores.shared ? await aheadOf(stores.shared) : 0;
      if (Math.abs(ahead) > limits.clockSkewMsMax) {
        await stores.close();
        const [which, by] = [ahead > 0 ? "behind" : "ahead of", (Math.abs(ahead) / 1_000).toFixed(1)];
        throw new Error(`This machine's clock is ${by} s ${which} the database's: set it (by NTP), and start again.`);
      }
      clock.follow?.(ahead);
      return stores;
    } catch (error) {
      if (!isUnreachable(error)) throw isRefused(error) ? new Error(refusedWords(error)) : error;
      if (clock.now() > giveUpAt) {
        const code = (error as { code?: string }).code ?? (error as Error).message;
        throw new Error(`The database cannot be reached (${code}): check MILLRACE_DATABASE_URL, and that it runs.`);
      }
      if (tries === 1)
        emit({ type: "server.warning", message: "the database does not answer yet; waiting for it", error });
      await clock.sleep(limits.databaseRetryMs);
    }
  }
}

/** Whether the database does not let us in, or is not there: SQLSTATE classes 28 and 3D. */
const isRefused = (error: unknown): error is Error => /^(28|3D)/.test((error as { code?: string }).code ?? "");

const refusedWords = ({ message }: Error): string =>
  `The database server does not let us in (${message}): check MILLRACE_DATABASE_URL.`;
