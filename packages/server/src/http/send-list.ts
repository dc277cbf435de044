import { Readable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import type { FastifyReply } from "fastify";
import { limits } from "../limits.js";

/** Sends a list as a JSON array. A long one is made as it is read, and others have their turn between its slices. */
export async function sendList<T>(
  reply: FastifyReply,
  items: readonly T[],
  view: (item: T) => unknown,
): Promise<FastifyReply> {
  reply.header("content-type", "application/json; charset=utf-8");
  const slices = slicesOf(items, view);
  const first = await slices.next();
  const second = await slices.next();
  if (second.done) return reply.send(first.value ?? "");
  reply.raw.setTimeout(limits.readerStallMs, () => reply.raw.destroy());
  const whole = async function* () {
    yield first.value as string;
    yield second.value;
    yield* slices;
  };
  return reply.send(Readable.from(whole(), { objectMode: false, highWaterMark: limits.listSliceBytes }));
}

/** The text of a JSON array, in slices bounded in number and bytes. */
export async function* slicesOf<T>(items: readonly T[], view: (item: T) => unknown): AsyncGenerator<string, undefined> {
  let text = "[";
  for (let at = 0; at < items.length; at += limits.listSliceItems) {
    const views = await Promise.all(items.slice(at, at + limits.listSliceItems).map(view));
    for (const [n, each] of views.entries()) {
      text += `${at + n > 0 ? "," : ""}${JSON.stringify(each)}`;
      if (text.length < limits.listSliceBytes) continue;
      yield text;
      text = "";
      await turn();
    }
    await turn();
  }
  yield `${text}]`;
  return undefined;
}
