import { kib, mib } from "./units.js";

/** What of JSON is checked where. */
export const json = {
  jsonDepthMax: 500, // stock Python clients stop near 1,000
  jsonKeysMax: 250_000, // an input with more stalls whoever parses it
  jsonThreadBytes: 256 * kib, // larger bodies are checked off the main thread, and stay bytes
  jsonBytesPerTurn: 512 * kib, // checked on the main thread in one turn of the event loop: a few milliseconds
  jsonBytesFree: 4 * kib, // smaller bodies are not counted: to move one to the thread takes longer than to check it
  jsonPieceBytes: 64 * kib, // of a large array, the elements in so much are looked for at a time
  jsonPartsBytes: 512 * kib, // so much at a time is moved there of a body that comes
  ignoredBytesMax: mib, // of a body that a route does not read
} as const;
