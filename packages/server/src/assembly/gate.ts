import { type Bell, topics } from "../bell.js";
import type { Clock } from "../clock.js";
import { Gate } from "../lines/gate.js";
import type { Registry } from "../memory/registry.js";

/** Where load-balanced requests stand: the scaler hears of them, and the other servers, where there are any. */
export function openGate(clock: Clock, bell: Bell, registry: Registry, isShared: boolean): Gate {
  const gate = new Gate({
    clock,
    onDemand(endpointNo, isUrgent) {
      bell.ring(topics.demand(endpointNo));
      if (isUrgent && isShared) bell.ring("hosts"); // they are told how many wait
    },
    onOpen() {
      if (isShared) bell.ring("hosts"); // requests that wait at another server may be passed on to us
    },
    onSlots: ({ endpointNo, version }, slots) => registry.noteSlots(endpointNo, version, slots),
  });
  registry.onForget((endpointNo) => gate.close(endpointNo));
  return gate;
}
