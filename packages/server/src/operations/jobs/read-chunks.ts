import type { JobReport } from "../../domain/jobs/job.js";
import { Refusal } from "../../errors.js";
import { isJsonText, pieceOf, stringOf } from "../../json/json.js";
import { limits } from "../../limits/index.js";
import type { Needs } from "../needs.js";

/**
 * All of a job's chunks as JSON texts; chunks that were split on arrival are whole again. Nothing is consumed. If there
 * is more than one small page, `makeRoom` is called before the rest is read.
 */
export async function readChunks(
  { chunks }: Needs<"chunks">,
  { no, starts }: JobReport,
  makeRoom: () => Promise<unknown>,
): Promise<string[]> {
  const found: string[] = [];
  let parted = "";
  let bytes = 0;
  let hasRoom = false;
  for (let next = 0; ; ) {
    if (next > 0 && !hasRoom && bytes > limits.textReadBytesMax) {
      await makeRoom();
      hasRoom = true;
    }
    const page = await chunks.read({
      jobNo: no,
      fromIndex: next,
      bytesMax: hasRoom ? limits.chunkBytesMax : limits.textReadBytesMax,
    });
    if (page.length === 0) return found;
    next += page.length;
    for (const { output: json, start, metrics } of page) {
      if (start !== starts) continue;
      bytes += json.length;
      if (bytes > limits.outputBytesMax) throw tooLarge();
      const output = stringOf(json);
      const piece = pieceOf(output, metrics);
      if (!piece) found.push(output);
      else parted += piece.text;
      if (!piece?.isLast) continue;
      found.push((await isJsonText(parted)) ? parted : JSON.stringify(parted));
      parted = "";
    }
  }
}

const tooLarge = () =>
  new Refusal("INTERNAL", `The worker's chunks together are larger than the limit of ${limits.outputBytesMax} bytes.`);
