import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { FastifyReply } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../limits.js";
import { plainTemplate } from "../testing/facts-fixture.js";
import { type Http, openHttp } from "../testing/http-fixture.js";
import { Scene } from "../testing/scene-fixture.js";
import { sendList, slicesOf } from "./send-list.js";

let scene: Scene;
let http: Http;
const count = 400;
beforeAll(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
  const { registry } = scene.parts;
  const settings = { ...plainTemplate, name: "é", readme: "r".repeat(5_000) };
  const make = (n: number) => registry.createTemplate({ id: `template${n}`, ownerNo: scene.admin.ownerNo, settings });
  await Promise.all(Array.from({ length: count }, (_, n) => make(n)));
});
afterAll(async () => {
  await http.close();
  await scene.close();
});

/** The slices, and how many turns of the event loop others had meanwhile. */
async function sliced(items: readonly unknown[], view: (item: unknown) => unknown = (item) => item) {
  let turns = 0;
  let isOver = false;
  const beat = () => {
    turns++;
    if (!isOver) setImmediate(beat);
  };
  setImmediate(beat);
  const slices: string[] = [];
  for await (const slice of slicesOf(items, view)) slices.push(slice);
  isOver = true;
  return { slices, turns };
}

describe("A list", () => {
  it.each([0, 1, 50, 51, 1_000])("of %i is one JSON array, whatever its slices", async (length) => {
    const items = Array.from({ length }, (_, n) => ({ n, text: "é".repeat(n) }));
    const { slices } = await sliced(items);
    expect(JSON.parse(slices.join(""))).toEqual(items);
  });

  it("is made in slices of bounded size, with turns for others between them", async () => {
    const each = "x".repeat(10_000);
    const { slices, turns } = await sliced(Array(1_000).fill(each));
    for (const slice of slices) expect(slice.length).toBeLessThan(limits.listSliceBytes + 2 * each.length);
    expect(turns).toBeGreaterThanOrEqual(slices.length - 1);
    const small = await sliced(Array(10_000).fill(1));
    expect(small.turns).toBeGreaterThanOrEqual(10_000 / limits.listSliceItems);
  });

  it("waits for what is shown of each, a slice at a time", async () => {
    let most = 0;
    let now = 0;
    const view = async (item: unknown) => {
      most = Math.max(most, ++now);
      await new Promise((turn) => setImmediate(turn));
      now--;
      return item;
    };
    await sliced(Array(200).fill(1), view);
    expect(most).toBe(limits.listSliceItems);
  });

  it("comes whole over the wire, long or short", async () => {
    const { status, json, headers } = await http.get("/v1/templates");
    expect([status, json.length, headers.get("content-length")]).toEqual([200, count, null]);
    expect(json.map(({ id }: { id: string }) => id)).toEqual(scene.parts.registry.templates().map(({ id }) => id));
    const volumes = await http.get("/v1/networkvolumes");
    expect([volumes.text, volumes.headers.get("content-length")]).toEqual(["[]", "2"]);
    expect(volumes.headers.get("content-type")).toBe("application/json; charset=utf-8");
  });

  it("is made no further than its client reads", async () => {
    let made = 0;
    const sent: Readable[] = [];
    const reply = { header: () => {}, raw: { setTimeout: () => {} }, send: (body: Readable) => sent.push(body) };
    const view = () => {
      made++;
      return "x".repeat(10_000);
    };
    await sendList(reply as unknown as FastifyReply, Array(count).fill(0), view);
    const body = sent[0] as Readable;
    body.once("readable", () => {});
    for (let turns = 0; turns < 1_000; turns++) await new Promise((turn) => setImmediate(turn));
    expect(made).toBeLessThan(count / 4);
    expect(JSON.parse(await text(body))).toHaveLength(count);
  });
});
