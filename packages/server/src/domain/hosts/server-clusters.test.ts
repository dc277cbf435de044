import { describe, expect, it } from "vitest";
import { unlikeClusters } from "./server-clusters.js";

const [rack, cloud] = [
  { name: "rack", no: 3 },
  { name: "cloud", no: 4 },
];

describe("Two servers", () => {
  it.each([
    { it: "with the same list", ours: [rack, cloud], theirs: [rack, cloud] },
    { it: "of which one leaves the only cluster to the other", ours: [], theirs: [rack] },
    { it: "without clusters", ours: [], theirs: [] },
  ])("$it agree", ({ ours, theirs }) => {
    expect(unlikeClusters(ours, theirs, "server 2")).toBeUndefined();
    expect(unlikeClusters(theirs, ours, "server 2")).toBeUndefined();
  });

  it.each([
    { it: "of which one lacks a cluster", theirs: [rack], words: /this server are rack, cloud, .* server 2 are rack:/ },
    { it: "with another first one", theirs: [cloud, rack], words: /are rack, cloud, .* server 2 are cloud, rack:/ },
    { it: "of which one has none", theirs: [], words: /are rack, cloud, and those of server 2 are none:/ },
    {
      it: "whose contexts lead elsewhere",
      theirs: [rack, { ...cloud, no: 5 }],
      words: /the clusters rack, cloud are not the same ones here and on server 2:/,
    },
  ])("$it do not agree", ({ theirs, words }) => {
    expect(unlikeClusters([rack, cloud], theirs, "server 2")).toMatch(words);
  });
});
