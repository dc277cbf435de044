import type { Chunk, ChunkPage } from "../../store/index.js";

type Page = Promise<Chunk[]>;

/**
 * Reads a page of chunks once for everyone who asks for it before the read begins: the followers of a stream mostly ask
 * for the same pages. A read that has begun may miss chunks stored since, so it is not shared any more.
 */
export class SharedPages {
  readonly #unbegun = new Map<string, Page>();

  /** `read` calls `begin` right before it reads. */
  read({ jobNo, fromIndex, bytesMax }: ChunkPage, read: (begin: () => void) => Page): Page {
    const key = `${jobNo} ${fromIndex} ${bytesMax}`;
    const shared = this.#unbegun.get(key);
    if (shared) return shared;
    let hasBegun = false;
    const page = read(() => {
      hasBegun = true;
      this.#unbegun.delete(key);
    });
    if (!hasBegun) this.#unbegun.set(key, page);
    return page;
  }
}
