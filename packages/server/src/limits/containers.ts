import { minute, second } from "./units.js";

/** Containers and container engines. */
export const containers = {
  containerProcessesMax: 4_096, // of one container; a handler needs hundreds, a fork bomb everything
  containerMemoryShare: 0.9, // of the machine's memory; the server and the engine need the rest
  containerOomScore: 500, // if memory runs out, containers are killed before the server
  engineAnswerMs: 20 * second, // an engine silent for this long counts as away; making a container takes it seconds
  pullStallMs: 5 * minute, // a pull without progress for this long is waiting for its registry in vain
  enginePingMs: 2 * second, // on each start, a host waits this long for its engine before giving anything out
  imageCheckMs: second, // a save waits at most this long for what the container engine knows of an image
  engineRetryMs: second, // between attempts to reach a container engine that is away
} as const;
