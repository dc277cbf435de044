import type { FastifyReply } from "fastify";
import { limits } from "../limits.js";
import { makeTurns } from "../turns.js";
import { jsonType } from "./replies.js";

/**
 * Sends a list as a JSON array, in its request's room. A long one is made as it is read, and others have their turn
 * between its slices.
 */
export async function sendList<T>(
  reply: FastifyReply,
  items: readonly T[],
  view: (item: T) => unknown,
): Promise<FastifyReply> {
  reply.header("content-type", jsonType);
  const slices = slicesOf(items, view);
  const first = await slices.next();
  const second = await slices.next();
  if (second.done) return reply.send(first.value ?? "");
  const whole = async function* () {
    yield first.value as string;
    yield second.value;
    yield* slices;
  };
  return reply.request.room.send(reply, whole());
}

/**
 * The text of a JSON array, in slices bounded in number and bytes. An entry that is undefined is left out: it is gone since
 * it was listed. As many entries are looked up at once as make a slice, going by the size of those before.
 */
export async function* slicesOf<T>(items: readonly T[], view: (item: T) => unknown): AsyncGenerator<string, undefined> {
  let text = "[";
  let isFirst = true;
  let atOnce = 1;
  // the size of the first entry is not known: it has a turn of its own
  await makeTurns.take(limits.madeBytesPerTurn);
  for (let at = 0; at < items.length; ) {
    const batch = items.slice(at, at + atOnce);
    at += batch.length;
    let bytes = 0;
    for (const each of await Promise.all(batch.map(view))) {
      if (each === undefined) continue;
      const entry = JSON.stringify(each);
      text += isFirst ? entry : `,${entry}`;
      isFirst = false;
      bytes += entry.length;
    }
    if (text.length >= limits.listSliceBytes) {
      yield text;
      text = "";
    }
    const each = Math.max(1, bytes / batch.length);
    atOnce = Math.min(limits.listSliceItems, Math.max(1, Math.floor((limits.listSliceBytes - text.length) / each)));
    await makeTurns.take(atOnce * each);
  }
  yield `${text}]`;
  return undefined;
}
