import { kib, mib, second } from "./units.js";

/** Large replies, in memory that is lent. */
export const replies = {
  textReadBytesMax: 16 * kib, // larger outputs, errors and progress are read apart from their job, in memory that is lent
  chunkTextBytesMax: 16 * kib, // larger chunks are read from SQLite as bytes: a text of letters beyond ASCII takes 7 times as long
  chunkReadBytesPerTurn: mib, // of chunks, from SQLite in one turn of the event loop: a millisecond
  textPieceBytes: 2 * mib, // read at a time from the database: a few milliseconds
  lentBytesMax: 256 * mib, // of large results, lists and logs on their way out; who finds no room waits, then gets 503
  lentStreamBytesMax: 96 * mib, // the same of streams as they come, and of logs
  lentInputBytesMax: 96 * mib, // the same of inputs that workers take
  lentOwnerShare: 5 / 8, // of each account, what one owner may have: others always find room
  lentWaitMs: 15 * second, // for room: longer than a stuck reader may keep its share
  lentWriteBytes: 256 * kib, // handed to a socket at a time
  lentBytesPerTurn: mib, // handed to all sockets in one turn of the event loop: well under a millisecond of copying
  readerStallMs: 30 * second, // a client that reads nothing of a large reply for so long is gone
  readerStallWantedMs: 7 * second, // the same while others wait for room: kernels take a slow reader's bytes in large steps
  readerLookMs: second, // readers' progress is looked at so often
  readerBytesPerSecondMin: 64 * kib, // a client that reads more slowly while others wait for room is hung up on
  replyBytesMax: 2 * mib, // lent to each management request for its reply, or for the slices of a list
  listSliceItems: 50, // of a list, so many are made before others have their turn
  listSliceBytes: 64 * kib, // and so much of its text
  madeBytesPerTurn: 256 * kib, // of all lists that are being made
} as const;
