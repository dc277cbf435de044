import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { Scene } from "../../testing/scene-fixture.js";

describe("A webhook of a large job", () => {
  let scene: Scene;
  beforeEach(async () => {
    scene = await Scene.open();
  });
  afterEach(() => scene.close());

  it("is sent in pieces that make up its status body, with the input and the address unchanged", async () => {
    const endpoint = await scene.endpoint();
    const worker = await scene.worker(endpoint);
    const webhook = "https://hooks.example.com/";
    const text = "é😀".repeat(limits.storedPieceBytes / 5);
    const input = `{"big":1e400,"text":"${text}"}`;
    const output = `{"n":12345678901234567890,"text":"${text}"}`;
    const id = await scene.running(endpoint, worker, `{"input":${input},"webhook":"${webhook}"}`);
    await scene.done(worker, id, Buffer.from(`{"output":${output}}`));
    scene.sender.status = 200;
    scene.run(scene.loops.deliver());
    await scene.advance(50);
    await scene.until(() => scene.sender.posts.length > 0);
    const [post] = scene.sender.posts;
    expect(post!.pieces).toBeGreaterThan(1);
    expect(post!.text.includes(`"output":${output}`) && post!.text.includes(`"input":${input}`)).toBe(true);
    expect(post!.body).toMatchObject({ id, status: "COMPLETED", output: { text }, input: { text }, webhook });
  });
});
