import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { missingVariables, readSettings, withParameters } from "./settings.js";
import { version } from "./version.js";

const env = {
  RUNPOD_POD_ID: "w1",
  RUNPOD_WEBHOOK_GET_JOB: "http://s/v2/e/job-take/$ID?gpu=a&token=t",
  RUNPOD_WEBHOOK_POST_OUTPUT: "http://s/v2/e/job-done/$RUNPOD_POD_ID/$ID?gpu=a&token=t",
  RUNPOD_WEBHOOK_POST_STREAM: "http://s/v2/e/job-stream/$RUNPOD_POD_ID/$ID?gpu=a&token=t",
  RUNPOD_WEBHOOK_PING: "http://s/v2/e/ping/$RUNPOD_POD_ID",
};

describe("the worker's settings", () => {
  it("have every address with the ids filled in", () => {
    const settings = readSettings(env);
    expect(settings).toMatchObject({
      takeUrl: "http://s/v2/e/job-take/w1?gpu=a&token=t",
      takeBatchUrl: "http://s/v2/e/job-take-batch/w1?gpu=a&token=t",
      stopUrl: "http://s/v2/e/job-stop/w1?gpu=a&token=t",
      doneBatchUrl: "http://s/v2/e/job-done-batch/w1?gpu=a&token=t",
      pingUrl: "http://s/v2/e/ping/w1",
    });
    expect(settings.doneUrl("j/1", true)).toBe("http://s/v2/e/job-done/w1/j%2F1?gpu=a&token=t&isStream=true");
    expect(settings.streamUrl("j1")).toBe("http://s/v2/e/job-stream/w1/j1?gpu=a&token=t&isStream=false");
  });

  it("do not use the batched call if the URL for results has another shape", () => {
    expect(readSettings({ ...env, RUNPOD_WEBHOOK_POST_OUTPUT: "http://s/done/$ID" }).doneBatchUrl).toBeUndefined();
  });

  it.each([
    { given: "2500", ms: 2_500 },
    { given: "1", ms: 1_000 },
    { given: "soon", ms: 4_000 },
    { given: undefined, ms: 4_000 },
  ])("ping every $ms ms for $given", ({ given, ms }) => {
    expect(readSettings({ ...env, RUNPOD_PING_INTERVAL: given }).pingIntervalMs).toBe(ms);
  });

  it("name what is missing", () => {
    expect(missingVariables({ RUNPOD_WEBHOOK_GET_JOB: "http://s/" })).toEqual(["RUNPOD_WEBHOOK_POST_OUTPUT"]);
    expect(missingVariables(env)).toEqual([]);
  });

  it("append parameters with or without a query before them", () => {
    expect([withParameters("http://s/?a=1", { b: "2" }), withParameters("http://s/", { b: "2" })]).toEqual([
      "http://s/?a=1&b=2",
      "http://s/?b=2",
    ]);
  });
});

it("the version sent with each ping is the package's", () => {
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  expect(version).toBe(manifest.version);
});
