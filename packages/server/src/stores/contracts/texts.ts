import { beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../limits.js";
import { completed, failed, type Scene, type Setting } from "./scene.js";

/** What clients and handlers send comes back as it was. */
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
      "letters of every plane": '{"a":"é漢\u2028😀"}',
      "a text of 20 MB": `{"a":"${"x".repeat(limits.runsyncBytesMax - 8)}"}`,
    };
    it.each(Object.entries(traps))("pass unchanged: %s", async (_, text) => {
      const id = await scene.submit({ body: text });
      expect((await scene.takeOne(first)).input === text).toBe(true);
      await scene.append(id, first, text);
      await scene.stores.jobs.progress(scene.endpointNo, id, first, text);
      const running = await scene.job(id);
      expect(running.progress === text).toBe(true);
      await scene.settle(id, first, completed(text));
      expect((await scene.job(id)).output === text).toBe(true);
      expect((await scene.stores.reader.submission(running.no))?.input === text).toBe(true);
      expect((await scene.stores.chunks.handOut(running.no, 1)).chunks[0]?.output === text).toBe(true);
    });

    it("keep a NUL in a sentence", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      await scene.settle(id, first, failed("a\u0000b"));
      expect((await scene.job(id)).error).toBe("a\u0000b");
    });

    it("tell an empty text from none", async () => {
      const none = await scene.jobIn("COMPLETED", first);
      const empty = await scene.jobIn("IN_PROGRESS", first);
      await scene.settle(empty, first, completed('""'));
      expect([(await scene.job(none)).output, (await scene.job(empty)).output]).toEqual([undefined, '""']);
    });
  });
}
