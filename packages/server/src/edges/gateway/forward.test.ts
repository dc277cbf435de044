import { once } from "node:events";
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import type { Dispatcher } from "undici";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { type Outcome, Passage } from "./forward.js";

/** Tells the worker's connection to pause. */
class Controller implements Dispatcher.DispatchController {
  readonly aborted = false;
  readonly reason = null;
  paused = false;
  abort = () => {};
  pause = () => void (this.paused = true);
  resume = () => void (this.paused = false);
}

describe("A reply on its way", () => {
  let server: Server;
  beforeEach(async () => {
    server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });

  /** A passage to a client whose reply has begun, with the parts of its body that were written. */
  async function begun() {
    const asked = get({ port: (server.address() as AddressInfo).port, agent: false });
    const [, reply] = (await once(server, "request")) as [IncomingMessage, ServerResponse];
    const written: number[] = [];
    const write = reply.write.bind(reply) as (part: Buffer) => boolean;
    reply.write = ((part: Buffer) => {
      written.push(part.length);
      return write(part);
    }) as never;
    const outcomes: Outcome["kind"][] = [];
    const controller = new Controller();
    const passage = new Passage(reply, ({ kind }) => outcomes.push(kind));
    passage.onRequestStart(controller);
    passage.onResponseStart(controller, 200, {});
    await turn(); // its head is sent
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    return { controller, passage, answer, written, outcomes };
  }

  it("in parts of one byte is written in few parts", async () => {
    const { controller, passage, answer, written, outcomes } = await begun();
    const text = "a reply of many parts".repeat(10);
    for (const each of text) passage.onResponseData(controller, Buffer.from(each));
    await turn();
    expect(written).toEqual([text.length]);
    passage.onResponseData(controller, Buffer.from("!"));
    passage.onResponseEnd(controller);
    expect(String(await buffer(answer))).toBe(`${text}!`);
    expect(outcomes).toEqual(["ended"]);
  });

  it("reads no more parts than it can write at a time", async () => {
    const { controller, passage, answer } = await begun();
    let count = 0;
    while (!controller.paused && count < 10_000) {
      passage.onResponseData(controller, Buffer.from("x"));
      count++;
    }
    expect(count).toBe(limits.gatePiecesMax);
    await expect.poll(() => controller.paused).toBe(false);
    passage.onResponseEnd(controller);
    expect((await buffer(answer)).length).toBe(count);
  });

  it("shares the byte budget of a turn with all other replies, and reads nothing while it waits", async () => {
    const all: Awaited<ReturnType<typeof begun>>[] = [];
    while (all.length < 60) all.push(await begun());
    const bytes = () => all.flatMap(({ written }) => written).reduce((sum, length) => sum + length, 0);
    const part = Buffer.alloc(64 * 1_024);
    await turn();
    for (const { passage, controller } of all) passage.onResponseData(controller, part);
    await new Promise<void>((done) => process.nextTick(done));
    expect(all.filter(({ controller }) => controller.paused).length).toBeGreaterThan(0);
    const perTurn = [bytes()];
    while (bytes() < all.length * part.length) {
      const before = bytes();
      await turn();
      perTurn.push(bytes() - before);
    }
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(2 * limits.lentBytesPerTurn);
    for (const { passage, controller } of all) passage.onResponseEnd(controller);
    for (const { answer, outcomes } of all) {
      expect((await buffer(answer)).length).toBe(part.length);
      expect(outcomes).toEqual(["ended"]);
    }
  });

  it("waits for its client to read", async () => {
    const { controller, passage, answer } = await begun();
    let sent = 0;
    for (let turns = 0; turns < 20; ) {
      await turn();
      if (controller.paused) turns++;
      else {
        turns = 0;
        passage.onResponseData(controller, Buffer.alloc(64 * 1_024));
        sent += 64 * 1_024;
      }
    }
    const whole = buffer(answer);
    await expect.poll(() => controller.paused).toBe(false);
    passage.onResponseEnd(controller);
    expect((await whole).length).toBe(sent);
  });
});
