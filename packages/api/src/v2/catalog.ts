import Type from "typebox";
import { choice } from "../fields.js";

export const availabilityLevels = ["NONE", "LOW", "MEDIUM", "HIGH"] as const;
export type AvailabilityLevel = (typeof availabilityLevels)[number];
export const regions = ["NORTH_AMERICA", "EUROPE", "ASIA", "OCEANIA", "UNKNOWN"] as const;
export type Region = (typeof regions)[number];

const level = choice(availabilityLevels, "How many are free.");
const Availability = Type.Object({ id: Type.String(), name: Type.String(), availability: level });

/** A GPU type. */
export const GpuType = Type.Object({
  id: Type.String(),
  name: Type.String(),
  pool: Type.Union([Type.String(), Type.Null()], { description: "Its tier." }),
  manufacturer: choice(["NVIDIA", "AMD", "UNKNOWN"] as const, "Its maker."),
  memory: Type.Integer({ description: "GB." }),
  secure: Type.Boolean(),
  community: Type.Boolean(),
  price: Type.Object({ secure: Type.Number(), community: Type.Number() }),
  maxCount: Type.Object({ secure: Type.Integer(), community: Type.Integer() }),
  availability: Type.Optional(level),
  dataCenters: Type.Optional(Type.Array(Availability)),
});
/** Reply of `GET /v2/catalog/gpus`. */
export const GpuTypes = Type.Object({ gpus: Type.Array(GpuType) });

/** A CPU flavour. */
export const CpuType = Type.Object({
  id: Type.String(),
  name: Type.String(),
  group: Type.String(),
  vcpu: Type.Object({ min: Type.Integer(), max: Type.Integer() }),
  ramGbPerVcpu: Type.Number(),
  price: Type.Object({ securePerVcpu: Type.Number(), serverlessPerVcpu: Type.Number() }),
  availability: Type.Optional(level),
  dataCenters: Type.Optional(Type.Array(Availability)),
});
/** Reply of `GET /v2/catalog/cpus`. */
export const CpuTypes = Type.Object({ cpus: Type.Array(CpuType) });

/** A data centre, or the place of hosts here. */
export const DataCenter = Type.Object({
  id: Type.String(),
  name: Type.String(),
  region: choice(regions, "Its part of the world."),
  globalNetwork: Type.Boolean(),
  networkVolumeTypes: Type.Array(Type.String()),
  compliance: Type.Array(Type.String()),
  gpuAvailability: Type.Optional(Type.Array(Availability)),
  cpuAvailability: Type.Optional(Type.Array(Availability)),
});
/** Reply of `GET /v2/catalog/datacenters`. */
export const DataCenters = Type.Object({ dataCenters: Type.Array(DataCenter) });
