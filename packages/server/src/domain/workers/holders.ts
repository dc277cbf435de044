import { maySee, type Scope } from "../access/key.js";

/** How a sentence names a worker that holds what another one needs. */
export const workerHolder = (workerId: string, endpointId: string): string =>
  `worker ${workerId} of endpoint ${endpointId}`;

/** How it names a worker of which nothing is heard. */
export const silentHolder = (workerId: string): string => `worker ${workerId} of a host that is silent`;

/** How it names a pod. */
export const podHolder = (podId: string): string => `pod ${podId}`;

/** Another user's. */
export const anotherUsers = "a worker or pod of another user";

/** A sentence that may name who holds something, for a key: one of chosen endpoints is told no other resource's id. */
export function namedFor(scope: Scope, sentence: string): string {
  if (scope.kind !== "endpoints") return sentence;
  return sentence
    .replaceAll(/\bworker \w{14} of endpoint (\w{14})\b/g, (words, id: string) =>
      maySee(scope, id) ? words : "another worker",
    )
    .replaceAll(/\bworker \w{14} of a host\b/g, "a worker of a host")
    .replaceAll(/\bpod \w{14}\b/g, "a pod")
    .replaceAll(/another worker(?:, another worker)+/g, "other workers");
}
