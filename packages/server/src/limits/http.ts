import { kib, mib, minute, second } from "./units.js";

/** Connections and bodies. */
export const http = {
  turnMs: 8, // in each turn of the event loop, work of all callers together may begin for this long
  readSliceBytes: 8 * kib, // of a worker's or receiver's reply, parsed at a time: 1,600 of the shortest headers
  turnRestMsMax: 50, // after work that took a whole turn, its owner's next work waits as long as it took, and at most this
  bodiesBytesMax: 192 * mib, // of all bodies being received or stored; beyond it 503
  bodiesOwnerShare: 3 / 4, // of that, the most one owner may hold, so that others can go on
  bodiesCrowdedShare: 1 / 2, // of what an owner may hold; beyond it its bodies are read one by one
  bodyBytesFree: 4 * kib, // not counted per body: most bodies are smaller, and arrive at once
  bodyStallMs: 30 * second, // a client that sends nothing of its body for this long is disconnected
  wordsBytesMax: 512 * mib, // the same for workers' results, which are refused last
  bodyBytesUnpaced: 64 * kib, // larger bodies are read at a limited rate, all of them together
  bodyBytesSmall: 256 * kib, // larger bodies are checked off the main thread
  bodyBelievedShare: 1 / 8, // share of the announced length that must arrive before the whole buffer is allocated
  bodyTurnMs: 2, // large bodies must not block the event loop: they are read in spans of this length
  bodyBytesPerTurn: 512 * kib, // read of all large bodies together in one span: 250 MB/s
  discardedBytesPerTurn: 128 * kib, // the same for all discarded bodies: 65 MB/s
  bodyBytesPerRead: 64 * kib, // read from a socket at a time
  headerBytesMax: 16 * kib,
  headersMax: 256, // of a request or of a worker's reply; Go and nginx send fewer than 20, browsers 30
  headSliceBytes: kib, // parsed at a time at the beginning of a request; fits fifty of the shortest requests
  bodySliceBytes: 4 * kib, // the same within a body, which further requests may follow
  droppedPiecesPerMs: 2_000, // pieces that are dropped uncounted: a millisecond of parsing them counts as this many
  bodyPiecesPerTurn: 1_000, // of all bodies, parsed in one turn of the event loop: about half a millisecond
  lingerMs: 10 * second, // a refused upload may continue for this long and this many bytes
  lingerBytesMax: 64 * mib,
  headersTimeoutMs: 20 * second,
  requestTimeoutMs: 5 * minute,
  keepAliveMs: 75 * second,
  acceptors: 32, // sockets that listen on the port: as many connections are accepted in one round of the event loop
  resetsServedPerSecond: 200, // connections that were reset before they were accepted: each takes a tenth of a millisecond
  acceptBacklog: 4_096, // connections that wait at each of them; the system may allow fewer
  connectionsMax: 20_000,
  strangersMax: 500, // connections without an accepted key; each may send 64 KB at once, and all of them close at once
  strangerGraceMs: second, // beyond that number they are kept for this long: their first request may be on its way
  strangersAtOnceMax: 2_000, // beyond this number, not even for that long
  strangersLookMs: 250, // between two looks at those that are not new any more
  strangersPerLook: 250, // closed at a time: about 5 ms
  connectionsPerOwnerMax: 6_000, // closing as many at once takes about 100 ms
  pipelinedBytesMax: 64 * mib, // sent ahead of earlier requests' replies, on all connections
  connectionsKeptShare: 0.9, // of them; once more are open, each new one closes the one that has been idle longest
  filesReserved: 512, // of the files that a process may have open, kept for databases, logs, workers and webhooks
  hashesRemembered: 20_000, // of keys and workers' secrets: at most one per connection
  rateCountsMax: 10_000, // kept at a time; beyond it, counts that have fallen to zero are dropped
  keyCharsRemembered: 128, // longer than any key of ours
  drainRetryAfterSeconds: 5,
} as const;
