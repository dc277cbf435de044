import { statusPieces, statusText } from "../../domain/jobs/status-text.js";
import { limits } from "../../limits/index.js";
import type { Delivery } from "../../store/index.js";
import type { Needs } from "../needs.js";

/**
 * What a webhook says: its job's status body with the address and the input, as bytes in pieces. The large texts are read
 * a piece at a time and passed on as they are. Undefined where the job is gone.
 */
export async function webhookBody(
  { reader, clock }: Needs<"reader" | "clock">,
  { endpointNo, jobId, url }: Delivery,
): Promise<Buffer[] | undefined> {
  const found = await reader.findTexts(endpointNo, jobId, 0, limits.outputBytesHard);
  const input = found && (await reader.input(found.job.no));
  if (!input) return undefined;
  const { job, texts } = found;
  const address = `,"webhook":${JSON.stringify(url)}`;
  const about = texts
    ? statusPieces(job, texts, clock.now(), address)
    : [statusText(job, clock.now(), undefined, address)];
  const last = about.pop() as string; // it ends with the brace of the whole
  return [...about, `${last.slice(0, -1)},"input":`, ...input, "}"].map((piece) =>
    typeof piece === "string" ? Buffer.from(piece) : Buffer.from(piece.buffer, piece.byteOffset, piece.length),
  );
}
