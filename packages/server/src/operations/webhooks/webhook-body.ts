import { statusPieces, statusText } from "../../domain/jobs/status-text.js";
import { limits } from "../../limits/index.js";
import type { Delivery } from "../../store/index.js";
import type { Needs } from "../needs.js";

/**
 * The body of a webhook: its job's status body with the webhook's address and the input, as bytes in pieces. Large
 * texts are read a piece at a time and passed on unchanged. Undefined if the job is gone.
 */
export async function webhookBody(
  { reader, clock }: Needs<"reader" | "clock">,
  { endpointNo, jobId, url }: Delivery,
): Promise<Buffer[] | undefined> {
  const found = await reader.findTexts({ endpointNo, jobId, now: 0, bytesMax: limits.outputBytesHard });
  const input = found && (await reader.input(found.job.no));
  if (!input) return undefined;
  const { job, texts } = found;
  const address = `,"webhook":${JSON.stringify(url)}`;
  const about = texts
    ? statusPieces(job, texts, clock.now(), address)
    : [statusText(job, clock.now(), undefined, address)];
  const last = about.pop() as string; // it ends with the closing brace
  return [...about, `${last.slice(0, -1)},"input":`, ...input, "}"].map((piece) =>
    typeof piece === "string" ? Buffer.from(piece) : Buffer.from(piece.buffer, piece.byteOffset, piece.length),
  );
}
