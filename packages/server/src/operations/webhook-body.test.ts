import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../limits.js";
import { Scene } from "../testing/scene-fixture.js";
import { encoded } from "./webhook-body.js";

const units = Math.floor(limits.webhookPieceBytes / 3);

describe("Texts of a webhook", () => {
  it.each([
    { what: "nothing", texts: [""] },
    { what: "some small ones", texts: ['{"a":', "1", "}"] },
    { what: "one as long as a piece", texts: ["x".repeat(units)] },
    {
      what: "ones that end just before and after a piece",
      texts: ["x".repeat(units - 1), "yz", "x".repeat(units + 1), "y"],
    },
    { what: "one of three bytes a character", texts: ["漢".repeat(2 * units + 5)] },
    { what: "characters of two units, at even places", texts: ["😀".repeat(units)] },
    { what: "characters of two units, at odd places", texts: ["x", "😀".repeat(units), "y"] },
    { what: "half a character", texts: ["\ud83d".repeat(units + 1)] },
  ])("are encoded in pieces that are none too large: $what", async ({ texts }) => {
    const pieces = await encoded(texts);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(limits.webhookPieceBytes);
    expect(Buffer.concat(pieces).equals(Buffer.from(texts.join("")))).toBe(true);
  });

  it("let others have their turn between two pieces", async () => {
    let turns = 0;
    let next = setImmediate(function count() {
      turns++;
      next = setImmediate(count);
    });
    const pieces = await encoded(["x".repeat(5 * units)]);
    clearImmediate(next);
    expect(pieces).toHaveLength(5);
    expect(turns).toBeGreaterThanOrEqual(4);
  });
});

describe("A webhook of a large job", () => {
  let scene: Scene;
  beforeEach(async () => {
    scene = await Scene.open();
  });
  afterEach(() => scene.close());

  it("is sent in pieces that are its status body with the input and the address, as they came", async () => {
    const endpoint = await scene.endpoint();
    const worker = await scene.worker(endpoint);
    const webhook = "https://hooks.example.com/";
    const text = "é😀".repeat(units / 5);
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
