import { kib, minute, second } from "./units.js";

/** Load-balanced requests. */
export const gateway = {
  gateWaitMs: 2 * minute, // how long a request waits for a worker
  gateWaitingMax: 1_000, // per endpoint and server; the bodies of waiting requests are not read
  gateRingMs: 250, // the scaler looks at requests in flight at most this often
  gateTriesMax: 3, // a request that kills every worker must not be repeated for ever
  gateHintsMax: 16, // informational replies (103) per request; a worker that sends more says nothing useful
  gateHangUpMs: 2 * second, // a declined client has gone by then
  gateKeepAliveMs: 30 * second, // of silence on a WebSocket before both ends are pinged
  gateDialsMax: 10, // failed connection attempts per request, also to workers that are well but accept none
  gateKeptBytesMax: 64 * kib, // of an idempotent request's body, kept so that it can be sent again
  gateIdleMs: second / 2, // connections to workers; shorter than servers keep them, or requests would meet closing ones
  gateAheadBytesMax: 64 * kib, // of what a client sends before its WebSocket is accepted, which it should wait for
  gateFirstBytesMax: 16 * kib, // the beginning of a reply, joined with its head into one write
  gatePiecesMax: 256, // of a reply, read before they are written as one
  gatePieceBytes: kib, // minimum charge of a piece against a turn's bytes, however small it is
  gateConnectMs: 2 * second,
  workerPortFirst: 20_000, // workers' HTTP servers get ports from here up to those the system uses for outgoing calls
  workerPortsMin: 1_000, // with fewer ports than this in between, workers get ports of outgoing connections
  workerPortDrawsMax: 50, // after this many taken ports, too
  gateReplyHeaderBytesMax: 64 * kib,
  gateStallMs: minute, // a client that reads nothing of a reply for this long is gone
  gatePassOnMs: 5 * second, // another server accepts or declines a request at once, without waiting for a worker
  gateAvoidMs: 10 * second, // an unreachable server is skipped this long; requests then wait at their own
  gateMarkMs: 10 * second, // longest age of a passed-on request, including the difference of two clocks
  gateMarksMax: 200_000, // remembered so that none is used twice; beyond it requests wait at their own server
  gateDrainMs: 30 * second, // WebSockets of a worker being replaced may end by themselves for this long
  healthMs: 5 * second,
  healthSoonMs: 250, // until a worker is ready, and after a failure
  healthTimeoutMs: 2 * second,
  healthFailuresMax: 3,
  healthPatienceMs: 30 * second, // a worker that fails for this long is replaced
} as const;
