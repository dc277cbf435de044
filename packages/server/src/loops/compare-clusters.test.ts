import { expect, it } from "vitest";
import type { Here } from "../operations/needs.js";
import { clusterComparison } from "./compare-clusters.js";

it("Servers with other clusters are warned of once, and again when that happens again", () => {
  const said: object[] = [];
  const clusters = [{ name: "rack", no: 1, podClasses: [] }];
  const compare = clusterComparison({ here: { clusters } as unknown as Here, emit: (event) => void said.push(event) });
  const address = { host: "10.0.0.2", port: 8_000 };
  const other = { no: 2, seenAt: 0, address, clusters: [{ name: "cloud", no: 2 }] };
  const alike = { no: 2, seenAt: 0, address, clusters: [{ name: "rack", no: 1 }] };
  const silent = { no: 3, seenAt: 0 };
  for (const each of [other, other, silent, alike, other]) compare([each]);
  const warning = {
    type: "server.warning",
    message: expect.stringContaining("of this server are rack, and those of the server at 10.0.0.2:8000 are cloud"),
  };
  expect(said).toEqual([warning, warning]);
});
