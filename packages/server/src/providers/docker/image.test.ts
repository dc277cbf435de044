import { once } from "node:events";
import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../limits/index.js";
import { type Engine, openEngine } from "./engine.js";
import { complaintNow, imagesOf } from "./image.js";

let server: Server | undefined;
const asked: string[] = [];
afterEach(() => {
  vi.useRealTimers();
  server?.closeAllConnections();
  server?.close();
  asked.length = 0;
});

/** A server that listens as an engine does. */
async function engineThat(answers: RequestListener): Promise<Engine> {
  server = createServer((request, response) => {
    asked.push(request.url ?? "");
    answers(request, response);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return openEngine({ host: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`, certificates: undefined });
}

const machine = { architecture: "amd64", memoryBytes: 1, cpus: 1, boundsDisks: false };
const starting = { note: () => {}, reached: () => {}, signal: new AbortController().signal };
const found = JSON.stringify({ Architecture: "amd64", Config: { Cmd: ["serve"] } });

describe("An image's name", () => {
  it.each(["python:3.12/get?", "a/../../containers/x", "x#f", "a b", "a\r\nX: y", "--privileged"])(
    "that is invalid never becomes part of a request to the engine: %j",
    async (image) => {
      const engine = await engineThat((_request, response) => response.end(found));
      const refusal = { blame: "image", message: expect.stringMatching(/no name of a container image/) };
      await expect(imagesOf(engine)({ image, hasCommand: true }, machine, starting)).rejects.toMatchObject(refusal);
      expect(await complaintNow(engine, { image, hasCommand: true })).toMatch(/no name of a container image/);
      expect(asked).toEqual([]);
    },
  );

  it("is requested with its registry, tag and digest", async () => {
    const engine = await engineThat((_request, response) => response.end(found));
    const image = `localhost:5000/team/echo:1@sha256:${"a".repeat(64)}`;
    await imagesOf(engine)({ image, hasCommand: false }, machine, starting);
    expect(asked).toEqual([`/images/${image}/json`]);
  });
});

describe("An engine whose answer about an image does not end", () => {
  it("is given up after a while", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    let began: (response: ServerResponse) => void = () => {};
    const answering = new Promise<ServerResponse>((resolve) => {
      began = resolve;
    });
    const engine = await engineThat((_request, response) => {
      response.write('{"Config": {', () => began(response));
    });
    const complaint = imagesOf(engine)({ image: "a:1", hasCommand: true }, machine, starting).catch(String);
    const closed = once(await answering, "close");
    vi.advanceTimersByTime(limits.engineAnswerMs);
    expect(await complaint).toMatch(/does not answer/);
    await closed;
  });
});
