import fc from "fast-check";
import { expect, it } from "vitest";
import { newWorker } from "../testing/facts-fixture.js";
import { type LiveWorker, LiveWorkers } from "./live-workers.js";

const count = 6;
const step = fc.oneof(
  fc.record({ do: fc.constant("admit" as const), at: fc.nat(count - 1) }),
  fc.record({ do: fc.constant("end" as const), at: fc.nat(count - 1), endedAt: fc.nat(9) }),
  fc.record({ do: fc.constant("live again" as const), at: fc.nat(count - 1) }),
  fc.record({ do: fc.constant("forget" as const), before: fc.nat(9) }),
);

it("Workers are found among those that live, or have ended, whatever replaces their rows", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const workers = new LiveWorkers();
      let known: LiveWorker[] = [];
      const numbered = (no: number) => known.find(({ row }) => row.no === no);
      for (const each of steps) {
        if (each.do === "forget") {
          workers.forget(each.before);
          known = known.filter(({ row: { endedAt = Number.POSITIVE_INFINITY } }) => endedAt > each.before);
          continue;
        }
        const worker = numbered(each.at);
        if (each.do !== "admit") {
          if (worker) worker.row = { ...worker.row, endedAt: each.do === "end" ? each.endedAt : undefined };
        } else if (!worker) {
          const row = { ...newWorker, no: each.at, id: `worker-${each.at}`, endpointNo: each.at % 2 };
          known.push(workers.admit(each.at < 4 ? row : { ...row, endedAt: 5 }, 1));
        }
      }
      const split = (some: readonly LiveWorker[]) => [
        new Set(some.filter(({ row }) => row.endedAt === undefined)),
        new Set(some.filter(({ row }) => row.endedAt !== undefined)),
      ];
      expect([new Set(workers.live()), workers.ended()]).toEqual(split(known));
      for (const at of [0, 3, 6, 9]) {
        const since = known.filter(({ row: { endedAt = -1 } }) => endedAt >= at);
        expect(new Set(workers.endings.since(at)), `since ${at}`).toEqual(new Set(since));
      }
      for (const no of [0, 1]) {
        const own = known.filter(({ row }) => row.endpointNo === no);
        expect([new Set(workers.of(no)), workers.endedOf(no)]).toEqual(split(own));
      }
      expect(workers.size).toBe(2 * known.length + new Set(known.map(({ row }) => row.endpointNo)).size);
      for (let no = 0; no < count; no++)
        expect([workers.byNo(no), workers.byId(`worker-${no}`)]).toEqual([numbered(no), numbered(no)]);
    }),
  );
});
