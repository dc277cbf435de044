import type { TallyReader } from "../store/index.js";
import type { Gate } from "./gate.js";

/** Reads an endpoint's counts from the gate if its requests go through it, and from the store otherwise. */
export function gateTallies(stored: TallyReader, gate: Gate, isBalanced: (endpointNo: number) => boolean): TallyReader {
  return {
    async tally(endpointNo) {
      if (!isBalanced(endpointNo)) return stored.tally(endpointNo);
      const { waiting, peak, completed, failed, retried } = gate.loadOf(endpointNo);
      return { waiting, waitingNormal: waiting, running: peak, completed, failed, retried };
    },
    waiting: (endpointNos) => stored.waiting(endpointNos), // requests are no jobs
    oldestWaiting: async (endpointNo) =>
      isBalanced(endpointNo) ? gate.loadOf(endpointNo).oldestAt : stored.oldestWaiting(endpointNo),
    holdings: async (endpointNo) => (isBalanced(endpointNo) ? gate.holdings(endpointNo) : stored.holdings(endpointNo)),
    recount: (endpointNo) => stored.recount(endpointNo),
  };
}
