interface Page {
  readonly contentType: string;
  readonly bytes: Buffer;
}

/**
 * Makes a page for all who ask for it at the same time, one after the other. A caller never gets a page that was begun
 * before it asked, so it sees all that it knows of.
 */
export function sharedPage(make: () => Promise<{ contentType: string; text: string }>): () => Promise<Page> {
  let current: Promise<unknown> = Promise.resolve();
  let next: Promise<Page> | undefined;
  const begin = async (): Promise<Page> => {
    await current;
    next = undefined;
    const { contentType, text } = await make();
    return { contentType, bytes: Buffer.from(text) };
  };
  return () => {
    if (next !== undefined) return next;
    next = begin();
    current = next.catch(() => {});
    return next;
  };
}
