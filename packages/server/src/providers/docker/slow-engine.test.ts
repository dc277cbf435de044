import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../limits/index.js";
import { DockerProvider } from "./docker-provider.js";
import { type Engine, openEngine } from "./engine.js";
import { pull } from "./pull.js";

const secret = "the-secret-of-this-worker";
let directory: string;
let server: Server;
let engine: Engine;
/** The engine's answers to requests for a log and for an image. */
let onLogs: (reply: ServerResponse) => void;
let onPull: (reply: ServerResponse) => void;

/** An engine with one container that has ended; each test decides which answers are slow. */
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "millrace-slow-engine-"));
  const path = join(directory, "engine.sock");
  const found = {
    State: { Running: false, Status: "exited", ExitCode: 1, OOMKilled: false },
    Config: { Env: [`RUNPOD_AI_API_KEY=${secret}`] },
    NetworkSettings: { Networks: {} },
  };
  server = createServer((request, reply) => {
    if (request.url?.includes("/logs")) return onLogs(reply);
    if (request.url?.includes("/images/create")) return onPull(reply);
    reply.setHeader("content-type", "application/json");
    reply.end(JSON.stringify(found));
  });
  await new Promise<void>((listening) => server.listen(path, listening));
  engine = openEngine({ host: `unix://${path}`, certificates: undefined });
});
afterEach(async () => {
  vi.restoreAllMocks();
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
  rmSync(directory, { recursive: true, force: true });
});

const frame = (text: string): Buffer => {
  const header = Buffer.from([1, 0, 0, 0, 0, 0, 0, 0]);
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
};

/** Makes the time-outs of calls pass at once. */
const hurried = () => {
  const later = globalThis.setTimeout;
  vi.spyOn(globalThis, "setTimeout").mockImplementation(((act: () => void, ms = 0) =>
    later(act, ms === limits.engineAnswerMs ? 50 : ms)) as typeof setTimeout);
};

describe("An engine that does not answer a request for a log", () => {
  it("delays neither the last lines nor the log forever", async () => {
    hurried();
    onLogs = () => {};
    const provider = new DockerProvider(engine, "host", directory);
    await expect(provider.logTail("worker00000001")).rejects.toThrow(/does not answer/);
    const query = { tail: 10, signal: new AbortController().signal } as Parameters<typeof provider.logs>[2];
    const read = async () => {
      for await (const _ of provider.logs("worker00000001", { provider: "docker", ref: { container: "c" } }, query));
    };
    await expect(read()).rejects.toThrow(/does not answer/);
  });
});

it("The last lines of a container never show its own secret", async () => {
  onLogs = (reply) => reply.end(frame(`+ curl -H 'Authorization: ${secret}'\n`));
  const said = await new DockerProvider(engine, "host", directory).logTail("worker00000001");
  expect(said).toMatch(/^\+ curl -H 'Authorization: /);
  expect(said).not.toContain(secret);
});

describe("A pull", () => {
  it("without further progress fails, saying that the registry could not be reached", async () => {
    onPull = (reply) => reply.write('{"status":"Pulling from library/big"}\n');
    await expect(pull(engine, "big", undefined, () => {}, 100)).rejects.toThrow(/registry could not be reached/);
  });

  it("continues for as long as there is progress", async () => {
    onPull = (reply) => {
      let left = 10;
      const timer = setInterval(() => {
        reply.write('{"status":"Downloading"}\n');
        if (--left > 0) return;
        clearInterval(timer);
        reply.end();
      }, 30);
    };
    await pull(engine, "big", undefined, () => {}, 200);
  });

  it("that the engine does not begin fails too", async () => {
    onPull = () => {};
    await expect(pull(engine, "big", undefined, () => {}, 100)).rejects.toThrow(/does not answer/);
  });
});
