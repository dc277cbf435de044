import type { FastifyReply } from "fastify";
import { limits } from "../../../limits/index.js";
import { turns } from "../../../turns.js";
import { jsonType } from "./replies.js";

const lane = ["lists"] as const;

/**
 * Sends a list as a JSON array, or as the only field of an object, in its request's room. A long list is made while it is
 * read, and other work gets its turn between slices.
 */
export async function sendList<T>(
  reply: FastifyReply,
  items: readonly T[],
  view: (item: T) => unknown,
  field?: string,
): Promise<FastifyReply> {
  reply.header("content-type", jsonType);
  const slices = slicesOf(items, view, field);
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
 * The text of a JSON array, in slices bounded in entries and bytes. Undefined entries are left out: they have gone
 * since they were listed. Entries that must be looked up are looked up a slice at a time, estimated by the size of
 * earlier ones.
 */
export async function* slicesOf<T>(
  items: readonly T[],
  view: (item: T) => unknown,
  field?: string,
): AsyncGenerator<string, undefined> {
  let text = field === undefined ? "[" : `{${JSON.stringify(field)}:[`;
  let isFirst = true;
  let atOnce = 1;
  await turns.take(lane);
  for (let at = 0; at < items.length; ) {
    const shown = items.slice(at, at + atOnce).map(view);
    at += shown.length;
    let bytes = 0;
    for (const each of shown.some(isPromise) ? await Promise.all(shown) : shown) {
      if (each === undefined) continue;
      const entry = JSON.stringify(each);
      text += isFirst ? entry : `,${entry}`;
      isFirst = false;
      bytes += entry.length;
      if (text.length < limits.listSliceBytes) continue;
      yield text;
      text = "";
      await turns.take(lane);
    }
    const fitting = Math.floor((limits.listSliceBytes * shown.length) / Math.max(1, bytes));
    atOnce = Math.min(limits.listSliceItems, 2 * atOnce, Math.max(1, fitting));
    if (text !== "") await turns.take(lane);
  }
  yield `${text}${field === undefined ? "]" : "]}"}`;
  return undefined;
}

const isPromise = (value: unknown): boolean => value instanceof Promise;
