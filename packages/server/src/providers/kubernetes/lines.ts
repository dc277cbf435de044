import type { Readable } from "node:stream";

const lineEnd = 0x0a;

/**
 * The lines of a stream, without their ends. What is longer than `bytesMax()` is cut. The last line may lack its end, and
 * is left out unless it `mayLackEnd`.
 */
export async function* linesIn(stream: Readable, bytesMax: () => number, mayLackEnd = true): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let bytes = 0;
  const keep = (part: Buffer) => {
    const kept = part.subarray(0, bytesMax() - bytes);
    if (kept.length > 0) parts.push(kept);
    bytes += kept.length;
  };
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(lineEnd); end >= 0; end = chunk.indexOf(lineEnd, from)) {
      keep(chunk.subarray(from, end));
      yield parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
      parts = [];
      bytes = 0;
      from = end + 1;
    }
    keep(chunk.subarray(from));
  }
  if (bytes > 0 && mayLackEnd) yield Buffer.concat(parts);
}
