import { kib, mib, second } from "./units.js";

/** Large replies, in borrowed memory. */
export const replies = {
  textReadBytesMax: 16 * kib, // larger outputs, errors and progress are read separately, into borrowed memory
  chunkTextBytesMax: 16 * kib, // larger chunks are read as bytes: SQLite takes 7 times as long for non-ASCII strings
  eventsTextBytes: 16 * kib, // of small events, written to a reader together
  textReadBytesPerTurn: mib, // of pieces of a text from PostgreSQL, in one turn of the event loop: a millisecond
  textRowBytes: 64 * kib, // of a row of a large text from PostgreSQL; its string is collected while young
  lentBytesMax: 256 * mib, // of large results, lists and logs being sent; requests that find no room wait, then get 503
  lentStreamBytesMax: 96 * mib, // the same for live streams and logs
  lentInputBytesMax: 96 * mib, // the same for inputs that workers take
  lentOwnerShare: 5 / 8, // of each budget, the most one owner may hold, so that others find room
  lentWaitMs: 15 * second, // for room; longer than a stuck reader may keep its share
  lentWriteBytes: 256 * kib, // handed to a socket at a time
  lentBytesPerTurn: mib, // handed to all sockets in one turn of the event loop: well under a millisecond of copying
  metricsLinesPerSlice: 500, // of the metrics page, made before other work gets its turn: about a millisecond
  pageRestFactor: 5, // a page rests for this many times what it took to make: asking for it takes a sixth of the time
  readerStallMs: 30 * second, // a client that reads nothing of a large reply for this long is gone
  readerStallWantedMs: 7 * second, // the same while others wait; kernels take a slow reader's bytes in large steps
  readerLookMs: second, // between two looks at readers' progress
  readerBytesPerSecondMin: 64 * kib, // a client that reads more slowly while others wait for room is disconnected
  replyBytesMax: 2 * mib, // lent to each management request for its reply, or for the slices of a list
  parsedBytesPerByte: 32, // of a management body; an array takes two characters, and 56 bytes as an object
  listSliceItems: 50, // made of a list before other work gets its turn
  listSliceBytes: 64 * kib, // the same, in bytes of its text
} as const;
