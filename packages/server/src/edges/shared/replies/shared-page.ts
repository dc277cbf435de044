import { limits } from "../../../limits/index.js";
import type { Needs } from "../../../operations/needs.js";

interface Page {
  readonly contentType: string;
  readonly bytes: Buffer;
}

/**
 * Makes a page for everyone who asks for it at the same time, never two at a time, with rests in between: a client that
 * asks all the time can take a sixth of the event loop. A page is never older than the request for it, so a caller sees
 * everything it knows of.
 */
export function sharedPage(
  { clock }: Needs<"clock">,
  make: () => Promise<{ contentType: string; text: string }>,
): () => Promise<Page> {
  let rested: Promise<unknown> = Promise.resolve();
  let next: Promise<Page> | undefined;
  const begin = async (): Promise<Page> => {
    await rested;
    next = undefined;
    const began = clock.now();
    const made = make();
    const rest = async () => {
      const tookMs = clock.now() - began;
      if (tookMs > 0) await clock.sleep(limits.pageRestFactor * tookMs);
    };
    rested = made.then(rest, rest);
    const { contentType, text } = await made;
    return { contentType, bytes: Buffer.from(text) };
  };
  return () => {
    next ??= begin();
    return next;
  };
}
