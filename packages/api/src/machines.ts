import Type from "typebox";
import { choice, orNull } from "./fields.js";

// The server's rules have these words in tables of their own; a test compares the two.

/** The CPU flavours that endpoints and pods may ask for. */
export const cpuFlavors = ["cpu3c", "cpu3g", "cpu3m", "cpu5c", "cpu5g", "cpu5m"] as const;

/** The data centres that endpoints and pods may ask for. */
export const dataCenters = [
  "EU-RO-1",
  "CA-MTL-1",
  "EU-SE-1",
  "US-IL-1",
  "EUR-IS-1",
  "EU-CZ-1",
  "US-TX-3",
  "EUR-IS-2",
  "US-KS-2",
  "US-GA-2",
  "US-WA-1",
  "US-TX-1",
  "CA-MTL-3",
  "EU-NL-1",
  "US-TX-4",
  "US-CA-2",
  "US-NC-1",
  "OC-AU-1",
  "US-DE-1",
  "EUR-IS-3",
  "CA-MTL-2",
  "AP-JP-1",
  "EUR-NO-1",
  "EU-FR-1",
  "US-KS-3",
  "US-GA-1",
] as const;

/** The CUDA versions that endpoints and pods may ask for. */
export const cudaVersions = [
  "13.0",
  "12.9",
  "12.8",
  "12.7",
  "12.6",
  "12.5",
  "12.4",
  "12.3",
  "12.2",
  "12.1",
  "12.0",
  "11.8",
] as const;

const listOf = <T extends readonly string[]>(names: T, description: string) =>
  Type.Array(choice(names, "One of them."), { description, maxItems: 100 });

export const DataCenters = listOf(dataCenters, "Acceptable data centres; empty means any.");
export const CudaVersions = listOf(cudaVersions, "Acceptable CUDA versions; empty means any.");

/** What endpoints and pods alike say of the machine they want. */
export const machineFields = {
  allowedCudaVersions: orNull(CudaVersions),
  cpuFlavorIds: orNull(listOf(cpuFlavors, "CPU flavours in order of preference.")),
  dataCenterIds: orNull(DataCenters),
};
