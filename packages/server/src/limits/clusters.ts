import { kib, mib, minute, second } from "./units.js";

/** Kubernetes clusters and the pods of workers. */
export const clusters = {
  clusterAnswerMs: 20 * second, // an API server silent for this long counts as away
  clusterConnectMs: 5 * second,
  clusterConnectionsMax: 32, // for calls
  clusterSocketMs: 5 * second, // to open a WebSocket, for which the node is asked too, with the wait for its turn
  clusterSocketsOpening: 8, // at once to one worker
  clusterMessageBytesMax: 4 * mib, // one message on a WebSocket; nodes send some tens of KiB
  portForwardDrainMs: 20, // how often a connection that has failed looks whether what came before was read
  portForwardBytesMax: 256 * kib, // of data in one message to a pod
  clusterReplyBytesMax: 64 * mib,
  clusterMessageCharsMax: 4_000,
  clusterPageItems: 500, // pods in one reply
  clusterPageNodes: 50, // nodes in one reply
  clusterStockMs: minute, // how often nodes are looked at
  clusterGpuTypesMax: 100,
  clusterRetryMs: second, // between attempts to reach an API server that is away
  clusterRetryMsMax: 30 * second, // and to make a pod that the cluster does not admit
  clusterRoomMs: 10 * second, // a worker without a node for this long goes where there is room
  clusterNextMs: minute, // and to the next cluster after this long: autoscalers mostly speak within half a minute
  clusterAwayMs: 2 * minute, // an API server that is away for this long counts as a cluster without room
  scaleUpsMs: 15 * second, // how often events are read while pods have no node
  podSlowMs: 30 * second, // a pod has a node: after this it is asked why it does not get on
  scaleUpsAnswerMs: 5 * second,
  scaleUpsBarredMs: 10 * minute, // how often it is tried without the right to
  scaleUpsMax: 2_000,
  scaleUpValidMs: 15 * minute, // a node that has not come by then is not awaited any more
  clusterLeftMs: 10 * minute, // not back to a cluster that had none: a new node takes its time
  placeCharsMax: 261,
  podClassCharsMax: 63,
  podWatchMs: 4 * minute, // a watch lasts this long and is then opened again where it ended
  podWatchSilenceMs: 150 * second, // a watch without so much as a bookmark, which come every minute, is dead
  podWatchLineBytesMax: 4 * mib, // one pod with its change
  podLookMs: 15 * second, // a pod that is awaited is looked at this often, in case the watch misses it
  podGoneMs: minute, // to wait for a pod of the same name to go
  podPullMs: 30 * second, // pull errors that last this long fail a start: the kubelet has retried by then
  podToldMs: 3 * second, // a node says within a second or two that a container runs
  podLogBackMs: minute, // how far a node's clock may be set back before lines that nobody has followed are missed
  podLogSoughtLines: 10_000, // of a kept log, to find the last one that has the cluster's own time
  podLogLastTries: 3, // to read what a pod that has ended has said
  podLogsMs: 5 * second, // an end is reported once its log is complete, and at the latest after this
  podEndsMax: 10_000, // remembered ends of pods that are gone, until they are asked for
  podLostMs: 30 * second, // how long a pod stays on a node that does not answer before it is evicted
  podMemoryGbDefault: 2,
  podGpuMemoryGbDefault: 16,
  credentialMs: 30 * second, // for a command that prints a credential
  credentialBytesMax: 256 * kib,
  credentialAgainMs: 10 * second, // one that is refused is renewed at most this often
  credentialAheadMs: 30 * second, // a credential is renewed this long before it expires
} as const;
