import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { useUpTurn, withTurns } from "../../testing/turns-fixture.js";
import { PassingBody } from "./body.js";

const passing = () => {
  const request = new PassThrough();
  return { request, body: new PassingBody(request as unknown as IncomingMessage) };
};

describe("A body on its way to a worker", () => {
  it("is passed on whole, in turns that all bodies share", async () => {
    const parts = Array.from({ length: 30 }, (_, n) => `${n} `);
    const { value, waits } = await withTurns(() => {
      const { request, body } = passing();
      for (const part of parts) request.write(part);
      request.end();
      return text(body);
    });
    expect([value, waits]).toEqual([parts.join(""), parts.length]);
  });

  it("keeps its order if the worker asks for more while a part waits", async () => {
    const { request, body } = passing();
    const whole = text(body);
    request.write("a");
    await new Promise((turn) => setImmediate(turn));
    useUpTurn();
    request.write("b");
    body.read(0);
    request.write("c");
    request.end("d");
    expect(await whole).toBe("abcd");
  });

  it("drops a waiting part when the worker has finished with the body", async () => {
    const { request, body } = passing();
    body.resume();
    await new Promise((turn) => setImmediate(turn));
    useUpTurn();
    request.write("late");
    body.destroy();
    await new Promise((turn) => setImmediate(turn));
    expect([body.destroyed, body.readableLength]).toEqual([true, 0]);
  });
});
