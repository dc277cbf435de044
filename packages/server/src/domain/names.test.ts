import * as api from "@millrace/api";
import { describe, expect, expectTypeOf, it } from "vitest";
import { countries } from "../limits/index.js";
import { madeOf } from "./endpoints/endpoint.js";
import { gpuTiers } from "./hosts/gpu.js";
import { type JobStatus, transitions } from "./jobs/job.js";
import type { WaitReason } from "./jobs/wait-reason.js";
import { type RefusalCode, refusals } from "./refusals.js";

describe("The domain and the API have the same names for", () => {
  it("states of a job", () => {
    expectTypeOf<JobStatus>().toEqualTypeOf<api.JobStatus>();
    const named = new Set<string>(Object.values(transitions).flatMap(({ from, to }) => [...from, to]));
    expect(named).toEqual(new Set(api.jobStatuses));
  });

  it("reasons to wait", () => {
    expectTypeOf<WaitReason>().toEqualTypeOf<api.WaitReason>();
    expect(new Set(api.waitReasons).size).toBe(api.waitReasons.length);
  });

  it("countries and GPU tiers", () => {
    expect(countries).toEqual(api.countries);
    expect(Object.keys(gpuTiers)).toEqual(api.gpuTiers);
  });

  it("the settings that workers are made from", () => {
    expect(madeOf).toEqual(api.madeOf);
  });

  it("refusals, with the same status and the same advice on retrying", () => {
    expectTypeOf<RefusalCode>().toEqualTypeOf<api.RefusalCode>();
    expectTypeOf(refusals).toEqualTypeOf(api.refusals);
    expect(refusals).toEqual(api.refusals);
  });
});
