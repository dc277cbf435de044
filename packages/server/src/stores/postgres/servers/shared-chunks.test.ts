import { describe, expect, it } from "vitest";
import type { Stores } from "../../../store/index.js";
import { on, openTwoServers, scene, times, workers } from "./two-servers-fixture.js";

openTwoServers();

describe("Two servers on one database", () => {
  it("leave no chunk of an earlier start in the next one", { timeout: 120_000 }, async () => {
    for (const round of times(25)) {
      const id = await scene.submit();
      await scene.takeOne(workers[0]!);
      const job = await scene.job(id);
      const append = (stores: Stores, workerNo: number, output: string) =>
        stores.chunks.append({ endpointNo: scene.endpointNo, jobId: id, workerNo, chunks: [{ output }] });
      const results = await Promise.all([
        ...times(6).map((n) => append(on(n), workers[0]!, '"old"')),
        on(round).jobs.change({ job, change: { by: "giveBack", excused: true }, now: scene.now }),
        ...times(6).map((n) => append(on(n + 1), workers[0]!, '"old"')),
      ]);
      expect(results[6]).toMatchObject({ status: "IN_QUEUE" });
      expect(await scene.stores.chunks.read({ jobNo: job.no, fromIndex: 0, bytesMax: 1_000 })).toEqual([]);
      await scene.takeOne(workers[1]!);
      expect(await append(on(round), workers[0]!, '"old"')).toBe(false);
      expect(await append(on(round + 1), workers[1]!, '"new"')).toBe(true);
      const chunks = await scene.stores.chunks.read({ jobNo: job.no, fromIndex: 0, bytesMax: 1_000 });
      expect(chunks).toEqual([{ index: 0, start: 2, output: '"new"', metrics: undefined }]);
      await scene.settle(id, workers[1]!);
    }
  });

  it("hand each chunk to one reader, in order, while chunks come", async () => {
    const id = await scene.submit();
    await scene.takeOne(workers[0]!);
    const { no } = await scene.job(id);
    let over = false;
    const writing = (async () => {
      for (const n of times(100))
        await on(n).chunks.append({
          endpointNo: scene.endpointNo,
          jobId: id,
          workerNo: workers[0]!,
          chunks: [{ output: `${n}` }],
        });
      over = true;
    })();
    const handed: number[] = [];
    const reading = times(6).map(async (n) => {
      let last = -1;
      for (let isLast = false; !isLast; ) {
        isLast = over;
        const { chunks } = await on(n).chunks.handOut({ jobNo: no, bytesMax: 5 });
        for (const { index } of chunks) {
          expect(index).toBeGreaterThan(last);
          last = index;
          handed.push(index);
        }
      }
    });
    await Promise.all([writing, ...reading]);
    for (let more = true; more; ) {
      const rest = await on(0).chunks.handOut({ jobNo: no, bytesMax: 1_000 });
      handed.push(...rest.chunks.map(({ index }) => index));
      ({ more } = rest);
    }
    expect(handed.sort((a, b) => a - b)).toEqual(times(100));
  });
});
