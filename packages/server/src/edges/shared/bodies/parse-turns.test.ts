import Fastify from "fastify";
import { expect, it } from "vitest";
import { PlainSignal } from "../../../clock.js";
import type { ApiKey } from "../../../domain/access/key.js";
import { limits } from "../../../limits/index.js";
import { Shares } from "../../../lines/shares.js";
import { Scene } from "../../../testing/scene-fixture.js";
import { lendRooms } from "../replies/room.js";
import { takeText } from "./bodies.js";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Blocks the thread, as parsing does. */
function compute(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

it("Bodies that get their memory together are parsed in turns: others wait for one of them, not for all", async () => {
  const scene = await Scene.open();
  const bytesMax = 2 ** 30;
  const shares = new Shares({ clock: scene.parts.clock, bytesMax, ownerBytesMax: bytesMax, waitMs: 60_000 });
  const app = Fastify();
  app.decorateRequest("caller");
  app.addHook("onRequest", (request, _reply, done) => {
    request.caller = { ownerNo: 1 } as ApiKey;
    done();
  });
  lendRooms(app, { ...scene.parts, shares });
  let turn = 0;
  const parsedIn: number[] = [];
  takeText(app, (text) => {
    compute(limits.turnMs + 1);
    parsedIn.push(turn);
    return text;
  });
  app.post("/", (request) => request.body);
  await app.ready();

  const all = await shares.ask(1, bytesMax, new PlainSignal());
  const bodies = Array.from({ length: 10 }, (_, n) => `body ${n}`);
  const sent = bodies.map((payload) => app.inject({ method: "POST", url: "/", payload }));
  while (!shares.isWanted) await nextTurn();
  for (let n = 0; n < 10; n++) await nextTurn();
  expect(parsedIn).toEqual([]);
  all?.release();
  while (parsedIn.length < bodies.length) {
    await nextTurn();
    turn++;
  }
  expect((await Promise.all(sent)).map(({ body }) => body)).toEqual(bodies);
  expect(new Set(parsedIn).size, parsedIn.join()).toBe(bodies.length);
  await app.close();
  await scene.close();
});
