import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { makePuppets } from "../e2e/puppet.js";
import { submit } from "../e2e/wire.js";
import { makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { type Bystander, expectUndisturbed, startBystander } from "./crowds/bystander.js";
import { crowdOf, expectMemory as expectMemoryOf, type Hostile } from "./crowds/crowd.js";

const mib = 2 ** 20;
const attackMs = 3_000;

let server: TestServer;
let bystander: Bystander;
let endpoint: string;
const undos: (() => Promise<void> | void)[] = [];
const ending = { onTestFinished: (undo: () => Promise<void> | void) => void undos.unshift(undo) };
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off", MILLRACE_LOG_LEVEL: "error" });
  ending.onTestFinished(() => server.end());
  endpoint = await makeEndpoint(server, makeHandler(ending), { workersMax: 0 });
  bystander = await startBystander(server, endpoint);
  ending.onTestFinished(() => bystander.end());
});
afterAll(async () => {
  for (const undo of undos) await undo();
});

const crowd = (count: number, act: (members: Hostile[]) => Promise<void>) => crowdOf(server, count, act);
const expectMemory = (name: string, mostMib: number, attack: () => Promise<void>) =>
  expectMemoryOf(server, name, mostMib, attack);

/**
 * Connections with an accepted key. Of others only a few hundred are kept, so no more are opened at a time: however busy
 * the machine is, the server knows them before the next ones come.
 */
async function knownCrowd(count: number, act: (members: Hostile[]) => Promise<void>, known: Hostile[] = []) {
  if (known.length >= count) return act(known);
  return crowd(Math.min(400, count - known.length), async (members) => {
    for (const member of members) member.head("GET", "/v1/templates/none");
    await until(() => members.every(({ status }) => status === 404), 60_000);
    await knownCrowd(count, act, [...known, ...members]);
  });
}

/** Writes zeros until the other side closes the connection, or until `bytes` are written. */
async function pour({ socket }: Hostile, bytes: number, wrap: (part: Buffer) => Buffer = (part) => part) {
  const part = wrap(Buffer.alloc(256 * 1_024, 0x20));
  for (let sent = 0; sent < bytes && !socket.destroyed && socket.writable; sent += 256 * 1_024) {
    if (socket.write(part)) continue;
    await new Promise<void>((done) => {
      const go = () => {
        for (const event of ["drain", "close"]) socket.off(event, go);
        done();
      };
      for (const event of ["drain", "close"]) socket.on(event, go);
    });
  }
}

const chunk = (part: Buffer) =>
  Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n")]);

describe("beside hostile clients others are served as usual, nothing is lost and memory stays bounded", {
  timeout: 240_000,
}, () => {
  it("200 uploads of a byte a second", async () => {
    await expectMemory("slow uploads", 100, () =>
      expectUndisturbed(bystander, "slow uploads", () =>
        crowd(200, async (members) => {
          for (const member of members) member.head("POST", `/v2/${endpoint}/run`, { "content-length": 5 * mib });
          for (const end = Date.now() + attackMs; Date.now() < end; await sleep(1_000)) {
            for (const { socket } of members) socket.write("{");
          }
          expect(members.filter(({ socket }) => socket.destroyed)).toEqual([]);
        }),
      ),
    );
    await bystander.expectNothingLost();
  });

  it("a body of 100 MB that is announced and trickles in: refused before it arrives, and disconnected", async () => {
    await expectUndisturbed(bystander, "a dripped 100 MB", () =>
      crowd(50, async (members) => {
        for (const member of members) member.head("POST", `/v2/${endpoint}/run`, { "content-length": 100 * mib });
        await until(() => members.every(({ status }) => status === 413));
        const drip = setInterval(() => {
          for (const { socket } of members) socket.write(" ");
        }, 500);
        await until(() => members.every(({ socket }) => socket.destroyed), 30_000).finally(() => clearInterval(drip));
      }),
    );
    await bystander.expectNothingLost();
  });

  it("50 uploads of 100 MB at once: each refused early", async () => {
    await expectMemory("50 uploads of 100 MB", 400, () =>
      expectUndisturbed(bystander, "50 uploads of 100 MB", () =>
        crowd(50, async (members) => {
          const bytes = 100 * mib;
          for (const member of members) member.head("POST", `/v2/${endpoint}/runsync`, { "content-length": bytes });
          await Promise.all(members.map((member) => pour(member, bytes)));
          await until(() => members.every(({ status }) => status === 413));
        }),
      ),
    );
    await bystander.expectNothingLost();
  });

  it("50 uploads of 100 MB without a length", async () => {
    await expectMemory("50 chunked uploads of 100 MB", 500, () =>
      expectUndisturbed(bystander, "50 chunked uploads of 100 MB", () =>
        crowd(50, async (members) => {
          for (const member of members) {
            member.head("POST", `/v2/${endpoint}/runsync`, { "transfer-encoding": "chunked" });
          }
          await Promise.all(members.map((member) => pour(member, 100 * mib, chunk)));
          await until(() => members.every(({ status }) => status === 413 || status === 503));
        }),
      ),
    );
    await bystander.expectNothingLost();
  });

  it("5,000 idle connections", async () => {
    const [, most] = /^Max open files\s+\d+\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    const count = Math.min(5_000, Number(most) - 500);
    const name = `${count} idle connections`;
    await expectMemory(name, 300, () =>
      knownCrowd(count, async (members) => {
        for (const { socket } of members.slice(count / 2)) socket.write("GET /healthz HTTP/1.1\r\n");
        await expectUndisturbed(bystander, name, () => sleep(attackMs));
      }),
    );
    await bystander.expectNothingLost();
  });

  it("1,000 pipelined requests on each of 5 connections: all answered, in their order", async () => {
    await expectUndisturbed(bystander, "pipelined requests", () =>
      crowd(5, async (members) => {
        const read = members.map(() => "");
        members.forEach(({ socket }, at) => {
          socket.on("data", (data) => (read[at] += data.toString("latin1")));
          const one = (n: number) => `GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-request-id: r${n}\r\n\r\n`;
          socket.write(Array.from({ length: 1_000 }, (_, n) => one(n)).join(""));
        });
        const ids = (text: string) => [...text.matchAll(/x-request-id: r(\d+)/g)].map(([, n]) => Number(n));
        await until(() => read.every((text) => ids(text).length === 1_000));
        for (const text of read) expect(ids(text)).toEqual(Array.from({ length: 1_000 }, (_, n) => n));
        await sleep(attackMs / 2);
      }),
    );
    await bystander.expectNothingLost();
  });

  it("50 readers of a trickle of 20 MB", async (test) => {
    const { id, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const job = await submit(server, id);
    expect((await worker.take()).body?.id).toBe(job);
    expect((await worker.done(job, `{"output":"${"x".repeat(20 * mib - 100)}"}`)).status).toBe(200);
    await expectMemory("slow readers", 200, () =>
      crowd(50, async (members) => {
        for (const { socket } of members) socket.removeAllListeners("data").pause();
        for (const member of members) member.head("GET", `/v2/${id}/status/${job}`);
        const trickle = async () => {
          for (const end = Date.now() + attackMs; Date.now() < end; await sleep(100)) {
            for (const { socket } of members) socket.read(1_024);
          }
        };
        await until(() => members.every(({ socket }) => socket.readableLength > 0), 60_000);
        await expectUndisturbed(bystander, "slow readers", trickle);
      }),
    );
    await bystander.expectNothingLost();
  });
});
