import fc from "fast-check";
import { Histogram, Registry } from "prom-client";
import { expect, it } from "vitest";
import { Durations } from "./durations.js";

it("prints the same as prom-client's own histogram for the same observations", async () => {
  const observation = fc.record({
    route: fc.constantFrom("/v2/run", '/odd"\\\nroute'),
    status: fc.constantFrom(200, 404),
    seconds: fc.oneof(fc.constantFrom(0, 0.1, 0.5, 2, 2.000001), fc.double({ min: 0, max: 10, noNaN: true })),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(observation, { maxLength: 30 }), async (observations) => {
      const [ours, theirs] = [new Registry(), new Registry()];
      const common = { name: "seconds", help: "How long.", labelNames: ["route", "status"] as const };
      const durations = new Durations({ ...common, bucketsSeconds: [0.1, 0.5, 2], registry: ours });
      const histogram = new Histogram({ ...common, buckets: [0.1, 0.5, 2], registers: [theirs] });
      for (const { route, status, seconds } of observations) {
        durations.of(route, status).observe(seconds);
        histogram.labels(route, String(status)).observe(seconds);
      }
      expect(await ours.metrics()).toBe(await theirs.metrics());
    }),
    { numRuns: 100 },
  );
});
