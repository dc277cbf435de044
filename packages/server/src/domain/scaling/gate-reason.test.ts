import { expect, test } from "vitest";
import { endpointDefaults } from "../endpoints/endpoint.js";
import { gateReason } from "./gate-reason.js";

const settings = { ...endpointDefaults, name: "a", templateId: "b" };
const endpoint = { settings, failedStarts: 0, verdict: undefined };

test.each([
  {
    it: "workersMax 0",
    facts: { endpoint: { ...endpoint, settings: { ...settings, workersMax: 0 } } },
    says: /workersMax is 0/,
    isHopeless: true,
  },
  { it: "a place that no host has", facts: { obstacle: "Nowhere." }, says: /Nowhere/, isHopeless: true },
  {
    it: "a failed start",
    facts: { endpoint: { ...endpoint, failedStarts: 1, verdict: "boom" } },
    says: /failed to start.*boom/,
    isHopeless: false,
  },
  {
    it: "a crash loop",
    facts: { endpoint: { ...endpoint, failedStarts: 3, verdict: "boom" } },
    says: /last 3 workers.*boom/,
    isHopeless: false,
  },
  { it: "a start", facts: { states: ["starting" as const] }, says: /has not answered GET \/ping/, isHopeless: false },
  {
    it: "a start that takes long",
    facts: { states: ["starting" as const], doing: "pulling" },
    says: /starting \(pulling\)/,
    isHopeless: false,
  },
  {
    it: "unhealthy workers",
    facts: { states: ["idle" as const] },
    says: /answers GET \/ping/,
    isHopeless: false,
  },
  {
    it: "workers on unreachable hosts",
    facts: { states: ["idle" as const], isOutOfReach: true },
    says: /on other hosts/,
    isHopeless: false,
  },
  {
    it: "workers that are still stopping",
    facts: { states: ["stopping" as const, "closing" as const, "stopping" as const] },
    says: /still stop/,
    isHopeless: false,
  },
  { it: "a worker without a place", facts: { throttled: "It needs NVIDIA L4." }, says: /NVIDIA L4/, isHopeless: false },
  { it: "no worker at all", facts: {}, says: /No worker was started/, isHopeless: false },
])("No worker answers because of $it", ({ facts, says, isHopeless }) => {
  const { sentence, ...rest } = gateReason({ endpoint, states: [], pause: { leftMs: 0, isWatched: false }, ...facts });
  expect(sentence).toMatch(says);
  expect(rest.isHopeless).toBe(isHopeless);
});
