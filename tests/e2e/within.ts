import { expect } from "vitest";
import { type Ending, makeQueue } from "./handlers.js";
import { submit, type Target } from "./wire.js";

/**
 * Resolves with what `act` does, and fails if the server measures `ms` meanwhile: it holds reads of an empty stream that
 * long, from before `act`. On a busy machine both are late.
 */
export async function within<T>(test: Ending, server: Target, ms: number, act: () => Promise<T>): Promise<T> {
  const queue = await makeQueue(test, server);
  const job = await submit(server, queue);
  const isDone = new AbortController();
  const hold = async (leftMs: number): Promise<void> => {
    const path = `${server.url}/v2/${queue}/stream/${job}?wait=${Math.min(leftMs, 30_000)}`;
    const headers = { authorization: `Bearer ${server.key}` };
    const reply = await fetch(path, { headers, signal: isDone.signal });
    expect(await reply.text()).toBe("[]");
    if (leftMs > 30_000) await hold(leftMs - 30_000);
  };
  const measured = hold(ms).then(() => Promise.reject(new Error(`not within ${ms} ms of the server: ${act}`)));
  try {
    return await Promise.race([act(), measured]);
  } finally {
    isDone.abort();
    await measured.catch(() => {});
  }
}
