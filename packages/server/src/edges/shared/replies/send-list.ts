import type { FastifyReply } from "fastify";
import { limits } from "../../../limits/index.js";
import { turns } from "../../../turns.js";
import { jsonType } from "./replies.js";

const lane = ["lists"] as const;

/**
 * Sends a list as a JSON array, or as the last field of an object after `others`, in its request's room. A long list is made while it is
 * read, and other work gets its turn between slices.
 */
export async function sendList<T>(
  reply: FastifyReply,
  items: readonly T[],
  view: (item: T) => unknown,
  field?: string,
  others: object = {},
): Promise<FastifyReply> {
  reply.header("content-type", jsonType);
  const slices = slicesOf(items, view, field, others);
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
 * The text of a JSON array, in slices bounded in bytes. Undefined entries are left out: they have gone since they were
 * listed. Entries are shown one at a time, for one may be a thousand times as large as those before it; entries that must
 * be looked up are looked up a slice at a time, estimated by the size of earlier ones.
 */
export async function* slicesOf<T>(
  items: readonly T[],
  view: (item: T) => unknown,
  field?: string,
  others: object = {},
): AsyncGenerator<string, undefined> {
  const before = Object.entries({ ...others }).map(
    ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)},`,
  );
  let text = field === undefined ? "[" : `{${before.join("")}${JSON.stringify(field)}:[`;
  let isFirst = true;
  let atOnce = 1;
  if (turns.isOver) await turns.take(lane);
  for (let at = 0; at < items.length; ) {
    if (turns.isOver) await turns.take(lane);
    const first = view(items[at] as T);
    const shown = isPromise(first)
      ? await Promise.all([first, ...items.slice(at + 1, at + atOnce).map(view)])
      : [first];
    at += shown.length;
    let bytes = 0;
    for (const each of shown) {
      if (each === undefined) continue;
      const entry = JSON.stringify(each);
      text += isFirst ? entry : `,${entry}`;
      isFirst = false;
      bytes += entry.length;
      if (text.length < limits.listSliceBytes) continue;
      yield text;
      text = "";
      if (turns.isOver) await turns.take(lane);
    }
    const fitting = Math.floor((limits.listSliceBytes * shown.length) / Math.max(1, bytes));
    atOnce = Math.min(limits.listSliceItems, 2 * atOnce, Math.max(1, fitting));
  }
  yield `${text}${field === undefined ? "]" : "]}"}`;
  return undefined;
}

const isPromise = (value: unknown): boolean => value instanceof Promise;
