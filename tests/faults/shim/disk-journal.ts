import { readFileSync } from "node:fs";

const kinds = {
  c: "create",
  w: "write",
  t: "truncate",
  s: "sync",
  f: "failed sync",
  u: "unlink",
  r: "rename",
  m: "mark",
} as const;

/** One operation on the folder, or a mark of the test. The folder itself has the name "". */
export interface DiskRecord {
  readonly kind: (typeof kinds)[keyof typeof kinds];
  readonly name: string;
  /** The new name, for a rename. */
  readonly to: string;
  /** A write's offset, or the size after a truncation. */
  readonly at: number;
  /** The written bytes, or a mark's text. */
  readonly bytes: Uint8Array;
}

/** Reads the journal that disk-shim.c writes (`struct record`), in the order of the operations. */
export function readJournal(path: string): DiskRecord[] {
  const all = readFileSync(path);
  const records: DiskRecord[] = [];
  for (let start = 0; start < all.length; ) {
    const end = start + all.readUInt32LE(start);
    const kind = kinds[String.fromCharCode(all[start + 4]!) as keyof typeof kinds];
    const nameAt = start + 16;
    const toAt = nameAt + all[start + 5]!;
    const bytesAt = toAt + all[start + 6]!;
    if (kind === undefined || end > all.length || bytesAt > end) throw new Error(`no record at ${start} of ${path}`);
    records.push({
      kind,
      name: all.toString("utf8", nameAt, toAt),
      to: all.toString("utf8", toAt, bytesAt),
      at: Number(all.readBigUInt64LE(start + 8)),
      bytes: all.subarray(bytesAt, end),
    });
    start = end;
  }
  return records;
}
