import { beforeEach, describe, expect, it } from "vitest";
import type { JsonText } from "../../domain/jobs/job.js";
import { stringOf } from "../../json/json.js";
import { limits } from "../../limits/index.js";
import { completed, failed, type Scene, type Setting } from "./scene.js";

/** Texts of clients and handlers come back unchanged. */
export function texts(setting: () => Setting): void {
  describe("texts and numbers", () => {
    let scene: Scene;
    let first: number;
    beforeEach(() => {
      ({ scene, first } = setting());
    });

    const traps = {
      "a number beyond 64 bits": '{"n":12345678901234567890,"e":1e400}',
      "names in their order, some of them twice": '{"b":1,"a":2,"b":3,"__proto__":{"x":1}}',
      "blanks and escapes": '{ "a" :\t"\\u0000\\ud800\\/" ,\n"b": [ ] }',
      "characters of every plane": '{"a":"é漢\u2028😀"}',
      "a text of 20 MB": `{"a":"${"x".repeat(limits.runsyncBytesMax - 8)}"}`,
    };
    const ways: { as: string; json: (text: string) => JsonText }[] = [
      { as: "a text", json: (text) => text },
      { as: "bytes", json: (text) => Buffer.from(text) },
      // an input is a view into the bytes of a body
      { as: "bytes within a larger buffer", json: (text) => Buffer.from(`{"input":${text}}`).subarray(9, -1) },
    ];
    const cases = ways.flatMap((way) => Object.entries(traps).map(([it, text]) => ({ ...way, it, text })));
    it.each(cases)("pass unchanged as $as: $it", async ({ text, json }) => {
      const id = await scene.submit({ body: json(text) });
      const taken = await scene.takeOne(first);
      const isLarge = Buffer.byteLength(text) > limits.takeReadBytesMax;
      expect(taken.input === (isLarge ? undefined : text)).toBe(true);
      expect(taken.inputBytes).toBe(Buffer.byteLength(text));
      await scene.append(id, first, json(text), json(text));
      await scene.stores.jobs.progress({
        endpointNo: scene.endpointNo,
        jobId: id,
        workerNo: first,
        progress: json(text),
      });
      const running = await scene.job(id);
      expect(running.progress === text).toBe(true);
      await scene.settle(id, first, completed(json(text)));
      expect((await scene.job(id)).output === text).toBe(true);
      expect(Buffer.concat((await scene.stores.reader.input(running.no))!).toString() === text).toBe(true);
      const chunks = await scene.stores.chunks.read({
        jobNo: running.no,
        fromIndex: 0,
        bytesMax: limits.outputBytesHard,
      });
      expect(chunks.map(({ output }) => stringOf(output) === text)).toEqual([true, true]);
    });

    it("are read apart from their job if they are large, all from one moment", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const short = `"${"x".repeat(limits.textReadBytesMax - 2)}"`;
      const { jobs } = scene.stores;
      await jobs.progress({ endpointNo: scene.endpointNo, jobId: id, workerNo: first, progress: short });
      expect(await scene.find(id)).toMatchObject({ progress: short, unreadBytes: 0 });
      expect((await scene.findTexts(id))?.texts).toBeUndefined();
      // characters of three bytes, so that piece boundaries fall inside characters
      const large = `"${"漢".repeat(limits.storedPieceBytes)}"`;
      const bytes = Buffer.byteLength(large);
      await jobs.progress({ endpointNo: scene.endpointNo, jobId: id, workerNo: first, progress: large });
      expect(await scene.find(id)).toMatchObject({ progress: undefined, unreadBytes: bytes });
      expect(await scene.findTexts(id, bytes - 1)).toMatchObject({ job: { unreadBytes: bytes }, texts: undefined });
      const reading = scene.findTexts(id, bytes);
      await scene.settle(id, first, failed("no"));
      const { job, texts: read } = (await reading)!;
      if (job.status === "IN_PROGRESS") expect(Buffer.concat(read!.progress!).toString() === large).toBe(true);
      else expect(job).toMatchObject({ status: "FAILED", error: "no" });
      expect(await scene.find(id)).toMatchObject({ error: "no", progress: undefined, unreadBytes: 0 });
    });

    it("are read with their errors, and not for an expired job", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const error = "\u0000é".repeat(limits.textReadBytesMax);
      await scene.settle(id, first, failed(error));
      const { texts: read } = (await scene.findTexts(id))!;
      expect(read).toMatchObject({ output: undefined, progress: undefined });
      expect(JSON.parse(Buffer.concat(read!.error!).toString())).toBe(error);
      scene.now += limits.runRetentionMs;
      expect(await scene.findTexts(id)).toBeUndefined();
    });

    it("are copied if they are views into bytes shared with other calls", async () => {
      const bodies = Array.from({ length: 8 }, (_, n) => `{"n":"${`${n}`.repeat(limits.jsonThreadBytes)}"}`);
      await Promise.all(bodies.map((body, n) => scene.submit({ body: n % 2 === 0 ? Buffer.from(body) : body })));
      const taken = await scene.take(first, bodies.length);
      const pieces = await Promise.all(taken.map(({ no }) => scene.stores.reader.input(no)));
      const inputs = pieces.map((input) => bodies.indexOf(Buffer.concat(input!).toString()));
      expect(inputs.sort()).toEqual(bodies.map((_, n) => n));
    });

    it("keep a NUL in a sentence", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      await scene.settle(id, first, failed("a\u0000b"));
      expect((await scene.job(id)).error).toBe("a\u0000b");
    });

    it.each(["a\u0000b", "a\ud800b", "a'b\\\"%_$1;--", "é漢😀"])("do no harm in any field: %j", async (text) => {
      const { jobs, chunks, deliveries, volumes, endpoints, workers, decisions } = scene.stores;
      const { endpointNo, now } = scene;
      const id = await scene.jobIn("IN_PROGRESS", first);
      expect(await scene.find(text)).toBeUndefined();
      expect(
        await jobs.settle({ endpointNo, jobId: text, workerNo: first, verdict: completed(), now }),
      ).toBeUndefined();
      expect(await jobs.progress({ endpointNo, jobId: text, workerNo: first, progress: "1" })).toBe(false);
      expect(await chunks.append({ endpointNo, jobId: text, workerNo: first, chunks: [{ output: "1" }] })).toBe(false);
      expect(await deliveries.list({ endpointNos: [endpointNo], jobId: text, limit: 10 })).toEqual([]);
      const volume = { id: "volume00000001", ownerNo: 1, name: text, size: 1, dataCenterId: "a", sizedAt: 1, gbMs: 0 };
      await volumes.create(volume);
      await endpoints.noteStart(endpointNo, {
        present: 1,
        tried: 1,
        failedStarts: 1,
        at: now,
        verdict: text,
        isHeld: true,
      });
      await workers.change(first, { by: "lastWords", exit: { code: 1, note: text } });
      await decisions.record({ endpointNo, decision: { at: now, inputs: text, outcome: text, reason: text } });
      await scene.change(id, { by: "fail", error: text });
      expect((await scene.job(id)).error).toBe(text);
      const hooked = await scene.jobIn("COMPLETED", first, { webhook: `https://example.com/${text}` });
      const [delivery] = await scene.deliveries();
      expect(delivery?.jobId).toBe(hooked);
      const attempt = { at: now, status: undefined, error: text, durationMs: 1 };
      await deliveries.record({ deliveryNo: delivery!.no, attempt, outcome: { state: "failed" } });
      expect((await scene.deliveries())[0]?.attempts).toHaveLength(1);
    });

    it("distinguish an empty text from none", async () => {
      const none = await scene.jobIn("COMPLETED", first);
      const empty = await scene.jobIn("IN_PROGRESS", first);
      await scene.settle(empty, first, completed('""'));
      expect([(await scene.job(none)).output, (await scene.job(empty)).output]).toEqual([undefined, '""']);
    });
  });
}
