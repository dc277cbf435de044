import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { WebSocket } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, until } from "../harness.js";
import { type Cluster, type Member, startCluster } from "../servers/cluster.js";
import { type Balanced, makeBalanced } from "./balanced.js";

let cluster: Cluster;
let endpoint: Balanced;
/** The server that has the endpoint's worker, and the server without one. */
let owner: Member;
let other: Member;
const undoings: (() => Promise<void> | void)[] = [];
beforeAll(async () => {
  cluster = await startCluster(2);
  const [maker] = cluster.members as [Member];
  endpoint = await makeBalanced({ onTestFinished: (undo) => void undoings.push(undo) }, maker, { workersMin: 1 });
  const [worker] = await until(async () => {
    const rows = await cluster.query<{ host_no: number }>("SELECT host_no FROM worker WHERE ready_at IS NOT NULL");
    return rows.length > 0 && rows;
  });
  owner = cluster.members.find(({ hostNo }) => hostNo === worker?.host_no) as Member;
  other = cluster.members.find(({ hostNo }) => hostNo !== worker?.host_no) as Member;
});
afterAll(async () => {
  for (const undo of undoings) await undo();
  await cluster?.end();
});

const ask = (path: string, init: RequestInit & { duplex?: "half" } = {}) =>
  fetch(`${other.url}/lb/${endpoint.id}${path}`, {
    redirect: "manual",
    ...init,
    headers: { authorization: `Bearer ${other.key}`, ...(init.headers as Record<string, string>) },
  });
const health = async (server: Member) => (await call(server, "GET", `/v2/${endpoint.id}/health`)).body;

describe("a request at a server without its own worker is served by the other server's worker", () => {
  it("as if it had arrived there: the worker sees one gateway, and no key", async () => {
    const reply = await ask("/a%2Fb?x=1", { method: "POST", body: "text", headers: { "x-forwarded-for": "1.2.3.4" } });
    const seen = (await reply.json()) as { method: string; url: string; body: string; rawHeaders: string[] };
    expect([reply.status, seen.method, seen.url, seen.body]).toEqual([200, "POST", "/a%2Fb?x=1", "text"]);
    const headers = Array.from({ length: seen.rawHeaders.length / 2 }, (_, n) =>
      seen.rawHeaders.slice(2 * n, 2 * n + 2),
    );
    const named = (name: string) => headers.filter(([each]) => each?.toLowerCase() === name).map(([, value]) => value);
    expect(named("x-forwarded-for")).toEqual(["127.0.0.1"]);
    expect(named("x-forwarded-prefix")).toEqual([`/lb/${endpoint.id}`]);
    expect(named("via")).toEqual(["1.1 millrace"]);
    expect(named("host")).toEqual([other.url.slice("http://".length)]);
    expect([...named("authorization"), ...named("x-millrace-passed-on"), ...named("expect")]).toEqual([]);
  });

  it("whatever its method, without a body and with an empty body", async () => {
    for (const method of ["GET", "DELETE", "OPTIONS", "PUT", "PATCH"]) {
      const bodies = method === "GET" ? [null] : [null, ""];
      for (const body of bodies)
        expect(await (await ask("/", { method, body })).json()).toMatchObject({ method, body: "" });
    }
  });

  it("with bodies of all kinds, which stream, and streamed replies", async () => {
    const bytes = Buffer.alloc(3_000_000, "body");
    const sum = createHash("sha256").update(bytes).digest("hex");
    for (const method of ["POST", "PUT"]) {
      const whole = await ask("/sink", { method, body: bytes });
      expect(await whole.json()).toMatchObject({ bytes: bytes.length, sha256: sum });
      const streamed = await ask("/sink", { method, body: new Blob([bytes]).stream(), duplex: "half" });
      expect(await streamed.json()).toMatchObject({ bytes: bytes.length, sha256: sum });
      expect(await (await ask("/sink", { method, body: "small" })).json()).toMatchObject({ bytes: 5 });
    }
    expect((await (await ask("/large?bytes=3000000")).arrayBuffer()).byteLength).toBe(3_000_000);
    expect((await ask("/refuse-body", { method: "POST", body: bytes })).status).toBe(413);
    expect((await ask("/nothing")).status).toBe(204);
    expect([(await ask("/away")).status, (await ask("/garbage")).status]).toEqual([302, 502]);
  });

  it("event by event", async () => {
    const prefix = join(endpoint.folder, "events");
    const reader = (await ask(`/events?gate=${prefix}`)).body?.getReader();
    for (let n = 0; n < 3; n++) {
      expect(new TextDecoder().decode((await reader?.read())?.value)).toBe(`data: ${n}\n\n`);
      writeFileSync(`${prefix}-${n}`, "");
    }
    expect((await reader?.read())?.done).toBe(true);
  });

  it("and counted once", async () => {
    const before = (await until(async () => {
      const { jobs } = await health(owner);
      return jobs.inProgress === 0 && { completed: jobs.completed };
    })) as { completed: number };
    const gate = join(endpoint.folder, "gate");
    const held = [1, 2, 3].map(() => ask(`/slow?gate=${gate}`));
    for (const server of cluster.members) await until(async () => (await health(server)).jobs.inProgress === 3);
    writeFileSync(gate, "");
    for (const reply of held) expect(await (await reply).text()).toBe("done");
    for (const server of cluster.members)
      await until(async () => {
        const { jobs } = await health(server);
        return jobs.inProgress === 0 && jobs.completed === before.completed + 3;
      });
  });

  it("WebSockets too", async () => {
    const socket = new WebSocket(`${other.url.replace("http", "ws")}/lb/${endpoint.id}/socket`, {
      headers: { authorization: `Bearer ${other.key}` },
    });
    const once = (event: "open" | "message" | "close") =>
      // biome-ignore lint/suspicious/noExplicitAny: the caller knows the event's type
      new Promise<any>((resolve) => socket.addEventListener(event, resolve, { once: true }));
    await once("open");
    socket.send("ping");
    expect((await once("message")).data).toBe("ping");
    socket.close();
    await once("close");
  });
});

it("a forged mark is refused before a worker sees the request, with a key and without", async () => {
  const forged = { "x-millrace-passed-on": `${other.hostNo}.${Date.now()}.${"n".repeat(20)}.${"0".repeat(64)}` };
  for (const server of cluster.members) {
    for (const headers of [forged, { ...forged, authorization: `Bearer ${server.key}` }]) {
      const reply = await fetch(`${server.url}/lb/${endpoint.id}/forged`, { headers });
      expect([reply.status, ((await reply.json()) as { code: string }).code]).toEqual([400, "INVALID_INPUT"]);
    }
  }
  expect(endpoint.notes().some(({ url, path }) => url === "/forged" || path === "/forged")).toBe(false);
});

it("a request that kills its worker is not repeated if that is unsafe", async () => {
  const reply = await ask("/die", { method: "POST", body: "x" });
  expect([reply.status, ((await reply.json()) as { code: string }).code]).toEqual([502, "WORKER_FAILED"]);
  expect(endpoint.notes().filter(({ died }) => died === "POST").length).toBe(1);
});
