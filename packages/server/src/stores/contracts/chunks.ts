import { beforeEach, describe, expect, it } from "vitest";
import { stringOf } from "../../json/json.js";
import { limits } from "../../limits/index.js";
import type { Scene, Setting } from "./scene.js";

/** Streamed output is handed out once, in order, and can be read again. */
export function chunks(setting: () => Setting): void {
  describe("chunks", () => {
    let scene: Scene;
    let first: number;
    let second: number;
    beforeEach(() => {
      ({ scene, first, second } = setting());
    });

    it("are handed out once, in order, at least one and up to a number of bytes", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const { no } = await scene.job(id);
      const { chunks } = scene.stores;
      await chunks.append({
        endpointNo: scene.endpointNo,
        jobId: id,
        workerNo: first,
        chunks: [{ output: '"aaaaaaaaaaaa"', metrics: '{"m":1}' }],
      });
      await scene.append(id, first, '"bb"', '"cc"', '"dd"');
      expect(await chunks.handOut({ jobNo: no, bytesMax: 5 })).toEqual({
        chunks: [{ index: 0, start: 1, output: '"aaaaaaaaaaaa"', metrics: '{"m":1}' }],
        more: true,
      });
      const next = await chunks.handOut({ jobNo: no, bytesMax: 9 });
      expect([next.chunks.map(({ index }) => index), next.more]).toEqual([[1, 2], true]);
      const last = await chunks.handOut({ jobNo: no, bytesMax: 1_000 });
      expect([last.chunks.map(({ output }) => output), last.more]).toEqual([['"dd"'], false]);
      expect(await chunks.handOut({ jobNo: no, bytesMax: 1_000 })).toEqual({ chunks: [], more: false });
    });

    it("keep their order, large or small, even if appended without waiting", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const { no } = await scene.job(id);
      const outputs = Array.from({ length: 6 }, (_, n) => `"${n}${n % 2 ? "" : "x".repeat(limits.largeCallBytes)}"`);
      await Promise.all(outputs.map((output) => scene.append(id, first, output)));
      const { chunks } = await scene.stores.chunks.handOut({ jobNo: no, bytesMax: limits.streamReplyBytesMax });
      expect(chunks.map(({ output }) => stringOf(output))).toEqual(outputs);
    });

    it("count their bytes, not their characters", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const { no } = await scene.job(id);
      await scene.append(id, first, '"漢漢漢"', '"漢漢漢"');
      expect((await scene.stores.chunks.handOut({ jobNo: no, bytesMax: 21 })).chunks).toHaveLength(1);
    });

    it("go to one reader each, however many read at once", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const { no } = await scene.job(id);
      await scene.append(id, first, ...Array.from({ length: 40 }, (_, n) => `${n + 100}`));
      const handed = await Promise.all(
        Array.from({ length: 30 }, () => scene.stores.chunks.handOut({ jobNo: no, bytesMax: 6 })),
      );
      const indexes = handed.map(({ chunks }) => chunks.map(({ index }) => index)).filter((each) => each.length > 0);
      // either may come first, but each must get chunks in order and without a gap
      indexes.sort((a, b) => a[0]! - b[0]!);
      expect(indexes.flat()).toEqual(Array.from({ length: 40 }, (_, n) => n));
      expect(indexes.length).toBeGreaterThan(10);
    });

    it("come back if a reply could not deliver them, unless more were handed out since", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const { no } = await scene.job(id);
      const { chunks } = scene.stores;
      await scene.append(id, first, "1", "2");
      const lost = (await chunks.handOut({ jobNo: no, bytesMax: 1 })).chunks;
      await chunks.handBack({ jobNo: no, chunks: lost });
      const again = (await chunks.handOut({ jobNo: no, bytesMax: 1 })).chunks;
      expect(again).toEqual(lost);
      await chunks.handOut({ jobNo: no, bytesMax: 1 });
      await chunks.handBack({ jobNo: no, chunks: again });
      expect(await chunks.handOut({ jobNo: no, bytesMax: 1 })).toEqual({ chunks: [], more: false });
    });

    it("do not come back in a later start", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const { no } = await scene.job(id);
      await scene.append(id, first, '"old"');
      const lost = (await scene.stores.chunks.handOut({ jobNo: no, bytesMax: 100 })).chunks;
      await scene.change(id, { by: "giveBack", excused: false });
      await scene.takeOne(second);
      await scene.append(id, second, '"new"');
      expect((await scene.stores.chunks.handOut({ jobNo: no, bytesMax: 100 })).chunks).toMatchObject([
        { start: 2, output: '"new"' },
      ]);
      await scene.stores.chunks.handBack({ jobNo: no, chunks: lost });
      expect((await scene.stores.chunks.handOut({ jobNo: no, bytesMax: 100 })).chunks).toEqual([]);
    });

    it("begin at 0 again in each start", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const { no } = await scene.job(id);
      await scene.append(id, first, "1", "2");
      await scene.stores.chunks.handOut({ jobNo: no, bytesMax: 1 });
      await scene.change(id, { by: "giveBack", excused: false });
      expect(await scene.stores.chunks.handOut({ jobNo: no, bytesMax: 100 })).toEqual({ chunks: [], more: false });
      await scene.takeOne(first);
      await scene.append(id, first, "3");
      expect(await scene.stores.chunks.handOut({ jobNo: no, bytesMax: 100 })).toEqual({
        chunks: [{ index: 0, start: 2, output: "3", metrics: undefined }],
        more: false,
      });
    });

    it("are stored once if a call with the same name is repeated", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const { no } = await scene.job(id);
      const post = (name: string | undefined, ...outputs: string[]) => {
        const pieces = outputs.map((output) => ({ output }));
        return scene.stores.chunks.append({
          endpointNo: scene.endpointNo,
          jobId: id,
          workerNo: first,
          chunks: pieces,
          name,
        });
      };
      const stored = async () =>
        (await scene.stores.chunks.read({ jobNo: no, fromIndex: 0, bytesMax: 1_000 })).map(({ output }) => output);
      expect([await post("run-1", "1"), await post("run-1", "1")]).toEqual([true, true]);
      expect(await Promise.all([post("run-2", "2", "3"), post("run-2", "2", "3")])).toEqual([true, true]);
      expect(await stored()).toEqual(["1", "2", "3"]);
      // A different name is a different chunk, and so is every chunk without a name.
      for (const name of ["other-2", undefined, undefined]) await post(name, "4");
      expect(await stored()).toEqual(["1", "2", "3", "4", "4", "4"]);
      expect(
        (await scene.stores.chunks.handOut({ jobNo: no, bytesMax: 1_000 })).chunks.map(({ index }) => index),
      ).toEqual([0, 1, 2, 3, 4, 5]);
    });

    it("are stored together, in order and once, if they are many megabytes of one call", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const { no } = await scene.job(id);
      const outputs = ["a", "b", "c"].map((letter) => `"${letter.repeat(limits.chunkBytesMax - 2)}"`);
      const post = (workerNo: number, name?: string) =>
        scene.stores.chunks.append({
          endpointNo: scene.endpointNo,
          jobId: id,
          workerNo,
          chunks: outputs.map((output, n) => ({ output: Buffer.from(output), metrics: `{"n":${n}}` })),
          name,
        });
      expect(await Promise.all([post(first, "run-1"), post(first, "run-1"), post(second, "run-2")])).toEqual([
        true,
        true,
        false,
      ]);
      await scene.append(id, first, "1");
      expect(await post(first)).toBe(true);
      const stored = await scene.stores.chunks.read({ jobNo: no, fromIndex: 0, bytesMax: limits.streamReplyBytesMax });
      const three = (from: number) => ["a", "b", "c"].map((letter, n) => [from + n, letter, `{"n":${n}}`]);
      expect(stored.map(({ index, output, metrics }) => [index, stringOf(output)[1], metrics])).toEqual([
        ...three(0),
        [3, undefined, undefined],
        ...three(4),
      ]);
    });

    it("are stored in a later start, whatever the names in the earlier one", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const { no } = await scene.job(id);
      const post = () =>
        scene.stores.chunks.append({
          endpointNo: scene.endpointNo,
          jobId: id,
          workerNo: first,
          chunks: [{ output: "1" }],
          name: "run-1",
        });
      await post();
      await scene.change(id, { by: "giveBack", excused: false });
      await scene.takeOne(first);
      expect(await post()).toBe(true);
      expect(await scene.stores.chunks.read({ jobNo: no, fromIndex: 0, bytesMax: 1_000 })).toMatchObject([
        { index: 0, start: 2 },
      ]);
    });

    it("are trimmed from the first on, of a job that has ended only", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const { no } = await scene.job(id);
      await scene.append(id, first, "10", "20", "30");
      const trim = (most: number) => scene.stores.chunks.trim({ endpointNo: scene.endpointNo, jobNo: no, most });
      const left = async () =>
        (await scene.stores.chunks.read({ jobNo: no, fromIndex: 0, bytesMax: 1_000 })).map(({ output }) => output);
      expect([await trim(2), await left()]).toEqual([0, ["10", "20", "30"]]);
      await scene.settle(id, first);
      expect([await trim(2), await left()]).toEqual([2, ["30"]]);
      expect([await trim(2), await left()]).toEqual([1, []]);
    });

    it("can be read repeatedly, from any chunk on", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const { no } = await scene.job(id);
      await scene.append(id, first, "10", "20", "30");
      await scene.settle(id, first);
      const read = async (from: number) =>
        (await scene.stores.chunks.read({ jobNo: no, fromIndex: from, bytesMax: 4 })).map(({ output }) => output);
      expect([await read(0), await read(0), await read(2), await read(3)]).toEqual([
        ["10", "20"],
        ["10", "20"],
        ["30"],
        [],
      ]);
      expect((await scene.stores.chunks.handOut({ jobNo: no, bytesMax: 100 })).chunks).toHaveLength(3);
    });
  });
}
