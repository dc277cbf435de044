import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PlainSignal } from "../../../clock.js";
import { limits } from "../../../limits/index.js";
import { plainTemplate } from "../../../testing/facts-fixture.js";
import { type Http, openHttp } from "../../../testing/http-fixture.js";
import { Scene } from "../../../testing/scene-fixture.js";
import { withTurns } from "../../../testing/turns-fixture.js";
import { slicesOf } from "./send-list.js";

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

async function sliced(items: readonly unknown[], view: (item: unknown) => unknown = (item) => item) {
  const slices: string[] = [];
  for await (const slice of slicesOf(items, view)) slices.push(slice);
  return slices;
}

describe("A list", () => {
  it.each([0, 1, 50, 51, 1_000])("of %i is one JSON array, whatever its slices", async (length) => {
    const items = Array.from({ length }, (_, n) => ({ n, text: "é".repeat(n) }));
    const slices = await sliced(items);
    expect(JSON.parse(slices.join(""))).toEqual(items);
  });

  it("is made in slices of bounded size, with turns for other work between them", async () => {
    const each = "x".repeat(10_000);
    const { value: slices, waits } = await withTurns(() => sliced(Array(1_000).fill(each)));
    for (const slice of slices) expect(slice.length).toBeLessThan(limits.listSliceBytes + 2 * each.length);
    expect(waits).toBeGreaterThanOrEqual(slices.length);
    const small = await withTurns(() => sliced(Array(10_000).fill(1)));
    expect(small.waits).toBeGreaterThanOrEqual(10_000 / limits.listSliceItems);
  });

  it("shows each entry in a turn of its own if it must: a large one may come after small ones", async () => {
    const items = [...Array(180).fill("x"), ...Array(60).fill("x".repeat(50_000))];
    expect((await withTurns(() => sliced(items))).waits).toBeGreaterThanOrEqual(items.length);
  });

  it("may be the last field of an object", async () => {
    let text = "";
    for await (const slice of slicesOf([1, 2], (item) => item, "list", { a: 1, b: { c: "é" } })) text += slice;
    expect(JSON.parse(text)).toEqual({ a: 1, b: { c: "é" }, list: [1, 2] });
  });

  it.each([
    ["small ones, a slice", 10, limits.listSliceItems],
    ["large ones, one", limits.listSliceBytes, 1],
  ])("looks up as many entries at once as make a slice: %s at a time", async (_, bytes, expected) => {
    let most = 0;
    let now = 0;
    const view = async () => {
      most = Math.max(most, ++now);
      await new Promise((turn) => setImmediate(turn));
      now--;
      return "x".repeat(bytes);
    };
    for await (const _ of slicesOf(Array(200).fill(1), view));
    expect(most).toBe(expected);
  });

  it("leaves out an entry that was deleted after it was listed", async () => {
    const slices = await sliced([1, 2, 3, 4], (item) => (item === 1 || item === 3 ? undefined : item));
    expect(slices.join("")).toBe("[2,4]");
  });

  it("with a later entry that cannot be shown is cut short, and the log gives the reason", async () => {
    const { registry } = scene.parts;
    const template = registry.templates().at(-1)!;
    const { settings } = template;
    Object.defineProperty(template, "settings", {
      configurable: true,
      get: () => {
        throw new Error("not to be shown");
      },
    });
    try {
      await expect(http.get("/v1/templates")).rejects.toThrow();
      expect(scene.warnings()).toMatchObject([
        { message: "a reply was cut short", error: { message: "not to be shown" } },
      ]);
    } finally {
      Object.defineProperty(template, "settings", { value: settings });
    }
  });

  it("arrives whole, long or short", async () => {
    const { status, json, headers } = await http.get("/v1/templates");
    expect([status, json.length, headers.get("content-length")]).toEqual([200, count, null]);
    expect(json.map(({ id }: { id: string }) => id)).toEqual(scene.parts.registry.templates().map(({ id }) => id));
    const volumes = await http.get("/v1/networkvolumes");
    expect([volumes.text, volumes.headers.get("content-length")]).toEqual(["[]", "2"]);
    expect(volumes.headers.get("content-type")).toBe("application/json; charset=utf-8");
  });

  it("is made no further than its client reads, in lent memory that is given back", async () => {
    const { shares } = scene.parts;
    const { registry } = scene.parts;
    const settings = { ...plainTemplate, name: "large", readme: "r".repeat(90_000) };
    const make = (n: number) => registry.createTemplate({ id: `large${n}`, ownerNo: scene.admin.ownerNo, settings });
    await Promise.all(Array.from({ length: 200 }, (_, n) => make(n)));
    const socket = connect(http.port, "127.0.0.1").pause();
    socket.write(`GET /v1/templates HTTP/1.1\r\nhost: here\r\nauthorization: Bearer ${scene.key}\r\n\r\n`);
    await expect.poll(() => shares.heldBytes).toBe(limits.replyBytesMax);
    socket.destroy();
    await expect.poll(() => shares.heldBytes).toBe(0);
    expect((await http.get("/v1/templates")).json).toHaveLength(count + 200);
    await expect.poll(() => shares.heldBytes).toBe(0);
  });

  it("and every other management request wait for memory before anything is read or changed", async () => {
    const { shares } = scene.parts;
    const all = await shares.ask(scene.admin.ownerNo, limits.lentBytesMax, new PlainSignal());
    const asked = [
      http.get("/v1/templates"),
      http.post("/v1/networkvolumes", { name: "late", size: 1, dataCenterId: "EU-RO-1" }),
    ];
    asked.push(http.post("/graphql", { query: "{myself{id}}" }));
    await expect.poll(() => shares.isWanted).toBe(true);
    expect(scene.parts.registry.volumes()).toEqual([]);
    const unparsed = http.post("/v1/templates", "{");
    let isParsed = false;
    void unparsed.then(() => {
      isParsed = true;
    });
    await http.get("/healthz");
    expect(isParsed).toBe(false);
    all?.release();
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await unparsed).status).toBe(400);
    await expect.poll(() => shares.heldBytes).toBe(0);
  });
});
