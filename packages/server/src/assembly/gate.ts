import { type Bell, topics } from "../bell.js";
import type { Clock } from "../clock.js";
import { Gate } from "../lines/gate.js";
import type { Registry } from "../memory/registry.js";

/** Opens the gate for load-balanced requests, which rings the scaler and, if there are any, the other servers. */
export function openGate(clock: Clock, bell: Bell, registry: Registry, isShared: boolean): Gate {
  const gate = new Gate({
    clock,
    onDemand(endpointNo, isUrgent) {
      bell.ring(topics.demand(endpointNo));
      if (isUrgent && isShared) bell.ring("hosts"); // tells other servers how many requests wait
    },
    onOpen() {
      if (isShared) bell.ring("hosts"); // requests that wait at other servers may be passed on to us
    },
    onSlots: ({ endpointNo, version }, slots) => registry.noteSlots(endpointNo, version, slots),
  });
  registry.onForget((endpointNo) => gate.close(endpointNo));
  return gate;
}
