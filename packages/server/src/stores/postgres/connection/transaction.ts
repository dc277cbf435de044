import type { Connection } from "./connection.js";

/** Runs several statements in one commit; a failure leaves nothing behind. */
export async function transaction<T>(connection: Connection, run: () => Promise<T>): Promise<T> {
  await connection.query("BEGIN");
  try {
    const result = await run();
    await connection.query("COMMIT");
    return result;
  } catch (error) {
    await connection.query("ROLLBACK").catch(() => {}); // the connection may be gone
    throw error;
  }
}
