import { dataCenters } from "../../limits/index.js";
import type { EndpointSettings } from "../endpoints/endpoint.js";
import type { GateReport } from "../scaling/gate-report.js";
import { isLoopback } from "../workers/worker-address.js";
import type { Gpu } from "./gpu.js";

/** How a worker runs: what is no image is a directory. */
export type WorkerKind = "process" | "container";

/** What a host has for workers. */
export interface HostFacts {
  /** The code of its country or its data centre; undefined fits every place. */
  readonly location: string | undefined;
  readonly gpus: readonly Gpu[];
  /** Whether a worker that wants a GPU waits until it gets one. */
  readonly gpusEnforced: boolean;
  /** Virtual processors. */
  readonly cpus: number;
  readonly memoryMib: number;
  /** Which workers cannot be started there now: no engine answers, or its operator does not want them. */
  readonly cannotRun?: readonly WorkerKind[];
  /** What is wrong with its GPUs, or why there are none: for people. */
  readonly gpuProblem?: string;
  /** The driver does not answer: GPUs that are not named here may be well, and serve the workers that have them. */
  readonly gpusUnseen?: true;
}

/** What a host has, what waits and runs at its gate, and where its server is reached. */
export interface SaidFacts extends HostFacts {
  readonly gate?: GateReport;
  readonly server?: ServerAddress;
}

/** Where the other servers reach a server. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
  /** Names its machine and the network it sees there; undefined where that is not known. */
  readonly machine?: string;
}

/** Whether one server may call another. A loopback address means the same server only on the same machine. */
export const mayCall = (there: ServerAddress, here: ServerAddress): boolean =>
  !isLoopback(there.host) || (there.machine !== undefined && there.machine === here.machine);

/** A host as the scaler sees it. */
export interface HostView extends HostFacts {
  readonly no: number;
  /** How many workers it has. */
  readonly workers: number;
}

/** Where an endpoint wants its workers. */
export type Places = Pick<EndpointSettings, "locations" | "dataCenterIds">;

const continents = ["EU", "EUR", "AP", "OC"];

/** The country of a place's code, which is its own or a data centre's: CZ of EU-CZ-1, US of US-TX-3. */
export function countryOf(code: string): string {
  const [first = "", second = ""] = code.split("-");
  return continents.includes(first) ? second : first;
}

/** Whether a host is where an endpoint wants its workers; empty lists are anywhere, and so is a host that does not say. */
export function isThere({ location }: Pick<HostView, "location">, { locations, dataCenterIds }: Places): boolean {
  if (location === undefined) return true;
  const country = countryOf(location);
  if (locations !== "" && !locations.split(",").includes(country)) return false;
  const isAnywhere = dataCenterIds.length === 0 || dataCenters.every((id) => dataCenterIds.includes(id));
  // a host that names its country alone is in any data centre there
  return (
    isAnywhere || dataCenterIds.some((id) => id === location || (location === country && countryOf(id) === country))
  );
}

/** What one look at a machine has found. */
export interface Stock {
  /** The GPUs that work, by index; undefined where that could not be told this time. */
  readonly gpus: readonly Gpu[] | undefined;
  /** Whether no GPU can be given out because the driver does not answer, which says nothing of those in use. */
  readonly isBlind?: true;
  /** Whether this is a machine with GPUs, be they broken or not. */
  readonly hasGpus: boolean;
  /** What is wrong, a sentence each; one about a certain GPU names its id where that is known. */
  readonly problems: readonly string[];
  readonly cpus: number;
  readonly memoryMib: number;
  readonly cannotRun?: readonly WorkerKind[];
}
