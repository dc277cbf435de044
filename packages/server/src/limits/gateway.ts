import { kib, minute, second } from "./units.js";

/** Load-balanced requests. */
export const gateway = {
  gateWaitMs: 2 * minute, // a request waits so long for a worker
  gateWaitingMax: 1_000, // of one endpoint at one server: their bodies are not read meanwhile
  gateRingMs: 250, // the scaler looks at requests in flight at most so often
  gateTriesMax: 3, // a request that ends every worker must end
  gateHintsMax: 16, // a worker that goes on with 103s says nothing that helps
  gateHangUpMs: 2 * second, // a declined client is gone by then
  gateKeepAliveMs: 30 * second, // of quiet in a WebSocket, then its ends are asked whether they are there
  gateDialsMax: 10, // one whose workers are well, but take no connection, too
  gateKeptBytesMax: 64 * kib, // of the body of an idempotent request, so that it can be sent again
  gateIdleMs: second / 2, // connections to workers: shorter than servers keep them, or a request meets one being closed
  gateAheadBytesMax: 64 * kib, // of what a client says before its WebSocket is agreed to: it has to wait for that
  gateFirstBytesMax: 16 * kib, // the beginning of a reply, put together with its head
  gatePartsMax: 256, // of a reply, read before they are written: as one
  gatePartBytes: kib, // a part counts as so much of a turn's bytes, however small it is
  gateConnectMs: 2 * second,
  workerPortFirst: 20_000, // local workers' own HTTP servers listen from here up to the system's ports for outgoing connections
  workerPortsMin: 1_000, // with fewer ports than that between the two, workers get ports of outgoing connections
  workerPortDrawsMax: 50, // so do they where so many draws were all taken
  gateReplyHeaderBytesMax: 64 * kib,
  gateStallMs: minute, // a client that reads nothing of a reply for so long is gone
  gatePassOnMs: 5 * second, // another server takes or declines a request at once: it does not wait for a worker
  gateAvoidMs: 10 * second, // a server that could not be reached is tried again; requests wait at their own meanwhile
  gateMarkMs: 10 * second, // a request that is passed on is on its way no longer, the two clocks' difference included
  gateMarksMax: 200_000, // remembered, so that none is used twice; beyond it requests wait at their own server
  gateDrainMs: 30 * second, // WebSockets of a worker that is replaced may end by themselves
  healthMs: 5 * second,
  healthSoonMs: 250, // until a worker is ready, and once it has failed
  healthTimeoutMs: 2 * second,
  healthFailuresMax: 3,
  healthPatienceMs: 30 * second, // a worker that fails for so long is replaced
} as const;
