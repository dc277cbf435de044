import type { Random } from "../random.js";
import { type DiskRecord, readJournal } from "../shim/disk-journal.js";
import type { ShimmedDisk } from "../shim/disk-shim.js";
import { Platter } from "../shim/platter.js";
import { Acknowledged, type Word } from "./acknowledged.js";
import { auditDisk, withFolder } from "./disk-audit.js";

/** The tests' marks: acknowledgements of the server, and the test's own actions. */
export type Mark = Word | { readonly of: "start" };

/** A disk's possible content after a power cut, and everything acknowledged by then. */
interface Cut {
  readonly at: number;
  readonly files: ReadonlyMap<string, Buffer>;
  readonly acknowledged: Acknowledged;
}

/** What is lost or wrong after one cut. */
export interface Loss {
  readonly at: number;
  readonly complaints: readonly string[];
}

/** The journal of a disk. */
export const recordsOf = (disk: ShimmedDisk): DiskRecord[] => readJournal(disk.journal);

/** The mark that a record holds; undefined if it is an operation on the disk. */
export const markOf = ({ kind, bytes }: DiskRecord): Mark | undefined =>
  kind === "mark" ? JSON.parse(Buffer.from(bytes).toString()) : undefined;

/** The point just after the first mark of a kind. */
export const pointOf = (records: readonly DiskRecord[], of: Mark["of"]): number =>
  records.findIndex((record) => markOf(record)?.of === of) + 1;

/** Random points from `from` to the journal's end, each a number of records. */
export function randomPoints(random: Random, records: readonly DiskRecord[], count: number, from = 1): number[] {
  return Array.from({ length: count }, () => random.whole(from, records.length));
}

/**
 * Replays a journal, and cuts the power at these points; a point given twice is cut twice, each time with its own luck.
 */
export async function cutAt(
  records: readonly DiskRecord[],
  points: readonly number[],
  random: Random,
  use: (cut: Cut) => Promise<void>,
): Promise<void> {
  const platter = new Platter(random);
  const acknowledged = new Acknowledged();
  let done = 0;
  for (const at of [...points].sort((one, other) => one - other)) {
    for (const record of records.slice(done, at)) {
      const mark = markOf(record);
      if (mark === undefined) platter.apply(record);
      else if (mark.of !== "start") acknowledged.hear(mark);
    }
    done = at;
    await use({ at, files: platter.afterCut(), acknowledged });
  }
}

/** Cuts the power at these points, opens each disk that is left, and collects the losses. */
export async function auditCuts(
  records: readonly DiskRecord[],
  points: readonly number[],
  random: Random,
): Promise<Loss[]> {
  const losses: Loss[] = [];
  await cutAt(records, points, random, async ({ at, files, acknowledged }) => {
    const complaints = await withFolder(files, (folder) => auditDisk(folder, acknowledged));
    if (complaints.length > 0) losses.push({ at, complaints: complaints.slice(0, 5) });
  });
  return losses;
}
