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
  atOnce?: number,
): Promise<FastifyReply> {
  reply.header("content-type", jsonType);
  const slices = slicesOf(items, view, atOnce);
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
 * The text of a JSON array, in slices bounded in number and bytes; so many entries are looked up `atOnce`. An entry that is
 * undefined is left out.
 */
export async function* slicesOf<T>(
  items: readonly T[],
  view: (item: T) => unknown,
  atOnce: number = limits.listSliceItems,
): AsyncGenerator<string, undefined> {
  let text = "[";
  let isFirst = true;
  for (let at = 0; at < items.length; at += atOnce) {
    await makeTurns.take(limits.listSliceBytes);
    const views = await Promise.all(items.slice(at, at + atOnce).map(view));
    for (const each of views) {
      if (each === undefined) continue; // gone since it was listed
      text += `${isFirst ? "" : ","}${JSON.stringify(each)}`;
      isFirst = false;
      if (text.length < limits.listSliceBytes) continue;
      makeTurns.spend(text.length);
      yield text;
      text = "";
      await makeTurns.take(0);
    }
  }
  yield `${text}]`;
  return undefined;
}
