import { setImmediate as turn } from "node:timers/promises";
import { isFinal } from "../domain/job.js";
import { statusText } from "../domain/status-text.js";
import { limits } from "../limits.js";
import type { Delivery } from "../store.js";
import type { Needs } from "./needs.js";

/**
 * What a webhook says: its job's status body with the input and the address, as bytes in pieces. Undefined where the job is gone.
 * While a large one is made, others have their turn.
 */
export async function webhookBody(needs: Needs<"reader" | "clock">, delivery: Delivery): Promise<Buffer[] | undefined> {
  const texts = await readTexts(needs, delivery);
  return texts && encoded(texts);
}

/** The body as texts to be joined. The job's large texts are read here alone, and come last, each as it was read. */
async function readTexts(
  { reader, clock }: Needs<"reader" | "clock">,
  { endpointNo, jobId, url }: Delivery,
): Promise<string[] | undefined> {
  const job = await reader.find(endpointNo, jobId, 0);
  const submission = job && (await reader.submission(job.no));
  if (!submission) return undefined;
  const address = `,"webhook":${JSON.stringify(url)}`;
  const about = statusText({ ...job, output: undefined, progress: undefined }, clock.now(), undefined, address);
  const output = isFinal(job.status) && job.output !== undefined ? [',"output":', job.output] : [];
  return [about.slice(0, -1), ...output, ',"input":', submission.input, "}"];
}

/** A UTF-16 unit takes three bytes at most. */
const pieceChars = Math.floor(limits.webhookPieceBytes / 3);

/** Texts as UTF-8, in pieces of at most `webhookPieceBytes`. */
export async function encoded(texts: readonly string[]): Promise<Buffer[]> {
  const pieces: Buffer[] = [];
  let gathered = "";
  for (const text of texts) {
    for (let at = 0; at < text.length; ) {
      if (gathered.length > pieceChars - 2) {
        pieces.push(Buffer.from(gathered));
        gathered = "";
        await turn();
      }
      const end = wholeCharacters(text, at + pieceChars - gathered.length);
      gathered += text.slice(at, end);
      at = end;
    }
  }
  pieces.push(Buffer.from(gathered));
  return pieces;
}

/** The same end, or the one before it where it would cut a character in two. */
function wholeCharacters(text: string, end: number): number {
  const unit = end < text.length ? text.charCodeAt(end - 1) : 0;
  return unit >= 0xd800 && unit < 0xdc00 ? end - 1 : end;
}
