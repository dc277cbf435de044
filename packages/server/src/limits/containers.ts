import { minute, second } from "./units.js";

/** Containers and their engine. */
export const containers = {
  containerProcessesMax: 4_096, // of one container; a handler needs hundreds, a fork bomb everything
  containerMemoryShare: 0.9, // of its machine's: the server and the engine need the rest
  containerOomScore: 500, // where memory runs out, containers go before the server
  engineAnswerMs: 20 * second, // an engine that says nothing for so long is away; making a container takes it seconds
  pullStallMs: 5 * minute, // a pull of which nothing comes for so long waits for a registry in vain
  enginePingMs: 2 * second, // before a host gives anything out it waits so long for its engine, each time it starts
  imageCheckMs: second, // a save waits no longer for what the container engine knows of an image
  engineRetryMs: second, // a container engine that is away is asked again
} as const;
