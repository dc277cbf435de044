import { kib, mib, minute, second } from "./units.js";

/** Connections and bodies. */
export const http = {
  bodiesBytesMax: 192 * mib, // of all bodies that are being received or stored; beyond it 503
  bodiesOwnerShare: 3 / 4, // of that, what one owner may hold: the others can go on
  bodyBytesFree: 4 * kib, // of a body, so much is not counted: most are smaller, and come at once
  bodyStallMs: 30 * second, // a client that sends nothing of its body for so long is hung up on
  wordsBytesMax: 512 * mib, // the same of workers' results, which are refused last
  bodyBytesSmall: 256 * kib, // larger ones are read at a pace, and checked off the main thread
  bodyBelievedShare: 1 / 8, // of a body that has come: then all that it announced is given memory
  bodyTurnMs: 2, // large bodies must not keep the event loop from its work: they are read at
  bodyBytesPerTurn: mib, // this much in such a time, all together: 500 MB/s
  bodyBytesPerRead: 64 * kib, // a socket brings so much at a time
  headerBytesMax: 16 * kib,
  headSliceBytes: kib, // parsed at a time where a request begins: the shortest ones come to fifty
  bodySliceBytes: 4 * kib, // the same within a body, behind which other requests may stand
  droppedPartBytes: 32, // the size of parts that are dropped uncounted, as if all were: chunks of a byte take six
  bodyPartsPerTurn: 1_000, // of all bodies, parsed in one turn of the event loop: about half a millisecond
  lingerMs: 10 * second, // a refused upload may go on this long, and this far
  lingerBytesMax: 64 * mib,
  headersTimeoutMs: 20 * second,
  requestTimeoutMs: 5 * minute,
  keepAliveMs: 75 * second,
  connectionsMax: 20_000,
  hashesRemembered: 20_000, // of keys and workers' secrets: one for each connection at most
  keyCharsRemembered: 128, // ours are shorter; what is longer is somebody's garbage
  drainRetryAfterSeconds: 5,
} as const;
