import { kib, mib } from "./units.js";

/** Which JSON is checked where, and its bounds. */
export const json = {
  jsonDepthMax: 500, // stock Python clients fail near 1,000
  jsonKeysMax: 250_000, // an input with more keys stalls anyone who parses it
  jsonThreadBytes: 256 * kib, // larger bodies are checked off the main thread, and stay bytes
  jsonLargeBytes: 2 * mib, // larger ones are checked in a thread of their own; 2 MiB take up to 20 ms
  jsonBytesFree: 4 * kib, // smaller bodies are checked in any turn: moving one to the thread takes longer
  jsonPieceBytes: 64 * kib, // of a large array, searched for elements at a time
  jsonTransferBytes: 512 * kib, // of an arriving body, moved to the thread at a time
  jsonLargeNice: 10, // of the thread that checks large ones: with all processors taken, others get nine times its share
  ignoredBytesMax: mib, // of a body that its route does not read
} as const;
