import type { JobReport, JsonText } from "../../domain/jobs/job.js";
import { Refusal } from "../../errors.js";
import { isJson, opensValue, type Pieced, partOf, stringOf, wholeOf } from "../../json/json.js";
import { limits } from "../../limits/index.js";
import { turns } from "../../turns.js";
import type { Needs } from "../needs.js";

const lane = ["chunks"] as const;

/**
 * All of a job's chunks; chunks that were split on arrival are whole again. Nothing is consumed. If there is more than
 * one small page, `makeRoom` is called before the rest is read.
 */
export async function readChunks(
  { chunks }: Needs<"chunks">,
  { no, starts }: JobReport,
  makeRoom: () => Promise<unknown>,
): Promise<Pieced[]> {
  const found: Pieced[] = [];
  let parted: JsonText[] = [];
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
    for (const chunk of page) {
      if (chunk.start !== starts) continue;
      if (turns.isOver) await turns.take(lane);
      bytes += chunk.output.length;
      if (bytes > limits.outputBytesMax) throw tooLarge();
      const part = partOf(chunk);
      if (part) parted.push(chunk.output);
      else found.push([chunk.output]);
      if (!part?.isLast) continue;
      found.push(await joinParts(parted));
      parted = [];
    }
  }
}

/** The value that was split: JSON in pieces, each a string; or else a string. */
async function joinParts(parts: Pieced): Promise<Pieced> {
  if (opensValue(parts[0] as JsonText)) {
    const texts: Uint8Array[] = [];
    for (const part of parts) {
      if (turns.isOver) await turns.take(lane);
      texts.push(Buffer.from(JSON.parse(stringOf(part)) as string));
    }
    const whole = await wholeOf(texts);
    if (await isJson(whole)) return [whole];
  }
  const inner = (json: JsonText) => (typeof json === "string" ? json.slice(1, -1) : json.subarray(1, -1));
  return ['"', ...parts.map(inner), '"'];
}

const tooLarge = () =>
  new Refusal("INTERNAL", `The worker's chunks together are larger than the limit of ${limits.outputBytesMax} bytes.`);
