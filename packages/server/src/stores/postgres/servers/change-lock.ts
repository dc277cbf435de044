import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";
import { numbers } from "../connection/arrays.js";
import type { Connections } from "../connection/connections.js";
import { isLost, worded } from "../connection/failures.js";

/** Any numbers will do, as long as all servers use the same ones for changes of resources. */
const changeLock = 7_246_551_906;
/** With a server's number, a lock that only says whose session holds the other one. */
const holderLock = 724_655_191;

export const lockSql = {
  take: "SELECT pg_advisory_lock_shared($2::int, $3::int), pg_advisory_lock($1)",
  give: "SELECT pg_advisory_unlock($1), pg_advisory_unlock_shared($2::int, $3::int)",
  /** Ends the sessions of these servers that hold the lock for changes. */
  free: `SELECT pg_terminate_backend(held.pid) FROM pg_locks held JOIN pg_locks holder USING (pid)
    WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 1
      AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND ((held.classid::bigint << 32) | held.objid::bigint) = $1::bigint
      AND holder.locktype = 'advisory' AND holder.objsubid = 2 AND holder.classid::bigint = $2::bigint
      AND holder.objid::bigint = ANY ($3::bigint[])`,
};

/**
 * Takes the lock that all servers share, and retries for a while if the connection breaks; a change that has begun is
 * not begun again.
 */
export async function exclusively<T>(reads: Connections, serverNo: number, change: () => Promise<T>): Promise<T> {
  const giveUpAt = realTime.monotonicMs() + limits.databasePatienceMs;
  const begun: { changing?: Promise<T> } = {};
  const locks = [changeLock, holderLock, serverNo];
  for (;;) {
    try {
      await reads.lend(async (connection) => {
        await connection.query(lockSql.take, locks);
        begun.changing = change();
        await begun.changing.catch(() => {}); // its caller gets the error
        await connection.query(lockSql.give, locks);
      });
    } catch (error) {
      // the lock is lost with the connection
      if (!begun.changing && (!isLost(error) || realTime.monotonicMs() > giveUpAt)) throw worded(error);
    }
    if (begun.changing) return begun.changing;
    await realTime.sleep(limits.reconnectMs);
  }
}

/**
 * Takes the lock away from servers that are frozen or cut off: their sessions live on, and the lock is nobody else's
 * until the database notices.
 */
export async function freeChanges(reads: Connections, serverNos: readonly number[]): Promise<void> {
  await reads.read(lockSql.free, [changeLock, holderLock, numbers(serverNos)]);
}
