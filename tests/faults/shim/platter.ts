import type { Random } from "../random.js";
import type { DiskRecord } from "./disk-journal.js";

const sectorBytes = 512;

type Change = Pick<DiskRecord, "kind" | "at" | "bytes">;
type Renaming = Pick<DiskRecord, "kind" | "name" | "to"> & { readonly file: PlatterFile };

/** Decides which of a series of unsynced changes have reached the disk: none, all, or each by chance. */
function luck(random: Random): () => boolean {
  const probability = random.pick([0, 1, random.next()]);
  return () => random.chance(probability);
}

/** The bytes that are certain to be in a file. */
class Content {
  #bytes: Buffer;
  #size: number;

  constructor(bytes: Buffer = Buffer.alloc(0)) {
    this.#bytes = bytes;
    this.#size = bytes.length;
  }

  copy(): Content {
    return new Content(Buffer.from(this.bytes()));
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  write(at: number, bytes: Uint8Array): void {
    const end = at + bytes.length;
    if (end > this.#bytes.length) {
      const grown = Buffer.alloc(Math.max(end, 2 * this.#bytes.length));
      grown.set(this.bytes());
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, at);
    this.#size = Math.max(this.#size, end);
  }

  truncate(size: number): void {
    if (size > this.#size) this.write(size - 1, Buffer.alloc(1));
    this.#bytes.fill(0, size);
    this.#size = size;
  }

  apply({ kind, at, bytes }: Change): void {
    if (kind === "write") this.write(at, bytes);
    else this.truncate(at);
  }

  /** Writes only some of a write's sectors. */
  tear({ at, bytes }: Change, random: Random): void {
    for (let from = at; from < at + bytes.length; ) {
      const next = Math.min(at + bytes.length, from - (from % sectorBytes) + sectorBytes);
      if (random.chance(0.5)) this.write(from, bytes.subarray(from - at, next - at));
      from = next;
    }
  }
}

class PlatterFile {
  readonly #sure = new Content();
  #unsynced: Change[] = [];

  change(change: Change): void {
    this.#unsynced.push(change);
  }

  sync(): void {
    for (const change of this.#unsynced) this.#sure.apply(change);
    this.#unsynced = [];
  }

  /**
   * Keeps a part of the unsynced changes, as a failed sync does. Later syncs do not write the rest: the kernel counts
   * it as clean.
   */
  failSync(random: Random): void {
    this.#applySome(this.#sure, random);
    this.#unsynced = [];
  }

  afterCut(random: Random): Buffer {
    const content = this.#sure.copy();
    this.#applySome(content, random);
    return content.bytes();
  }

  #applySome(content: Content, random: Random): void {
    const isThere = luck(random);
    const tornShare = random.pick([0, 0.1, 0.5]);
    for (const change of this.#unsynced) {
      if (change.kind === "write" && random.chance(tornShare)) content.tear(change, random);
      else if (isThere()) content.apply(change);
    }
  }
}

/**
 * A disk on which a journal is replayed. After a power cut it keeps the synced content of each file, and the names that
 * a sync of the folder has secured; of everything else any part may survive.
 */
export class Platter {
  readonly #random: Random;
  /** The files as processes see them. */
  readonly #names = new Map<string, PlatterFile>();
  #sureNames = new Map<string, PlatterFile>();
  #renamings: Renaming[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  /** Applies the next operation. */
  apply(record: DiskRecord): void {
    if (record.kind === "mark") return;
    if (record.name === "") this.#syncNames(record);
    else if (record.kind === "create") this.#rename(record, new PlatterFile());
    else this.#change(record, this.#fileOf(record.name));
  }

  /** One possible content of the folder if the power is cut now: names and bytes. */
  afterCut(): Map<string, Buffer> {
    const names = new Map(this.#sureNames);
    applySome(names, this.#renamings, this.#random);
    return new Map([...names].map(([name, file]) => [name, file.afterCut(this.#random)]));
  }

  #change(record: DiskRecord, file: PlatterFile): void {
    switch (record.kind) {
      case "write":
      case "truncate":
        file.change(record);
        break;
      case "sync":
        file.sync();
        break;
      case "failed sync":
        file.failSync(this.#random);
        break;
      default:
        this.#rename(record, file);
    }
  }

  #fileOf(name: string): PlatterFile {
    const file = this.#names.get(name);
    if (!file) throw new Error(`the journal changes ${name}, which it never made`);
    return file;
  }

  #rename(record: DiskRecord, file: PlatterFile): void {
    const renaming = { ...record, file };
    applyOne(this.#names, renaming);
    this.#renamings.push(renaming);
  }

  #syncNames({ kind }: DiskRecord): void {
    if (kind === "sync") this.#sureNames = new Map(this.#names);
    else applySome(this.#sureNames, this.#renamings, this.#random);
    this.#renamings = [];
  }
}

function applySome(names: Map<string, PlatterFile>, renamings: readonly Renaming[], random: Random): void {
  const isThere = luck(random);
  for (const renaming of renamings) if (isThere()) applyOne(names, renaming);
}

function applyOne(names: Map<string, PlatterFile>, { kind, name, to, file }: Renaming): void {
  if (kind !== "create") names.delete(name);
  if (kind !== "unlink") names.set(kind === "create" ? name : to, file);
}
