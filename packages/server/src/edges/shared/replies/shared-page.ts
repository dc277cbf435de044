import type { Needs } from "../../../operations/needs.js";

interface Page {
  readonly contentType: string;
  readonly bytes: Buffer;
}

/** How long to rest after making a page, as a multiple of the time that it took. */
const restShare = 5;

/**
 * Makes a page for all who ask for it at the same time, one after the other, with rests between them: a client that
 * asks for it all the time takes a sixth of the event loop. A caller never gets a page that was begun before it asked, so it sees all
 * that it knows of.
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
      if (tookMs > 0) await clock.sleep(restShare * tookMs);
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
