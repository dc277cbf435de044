import { createHash, randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { call, makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { type Balanced, exchange, makeBalanced } from "./balanced.js";

let server: TestServer;
let endpoint: Balanced;
const undoings: (() => Promise<void> | void)[] = [];
beforeAll(async () => {
  server = await startServer({ MILLRACE_LB_DOMAIN: "lb.test", MILLRACE_RATE_LIMITS: "off" });
  endpoint = await makeBalanced({ onTestFinished: (undo) => void undoings.push(undo) }, server, { workersMin: 1 });
});
afterAll(async () => {
  for (const undo of undoings) await undo();
  await server.end();
});

// biome-ignore lint/suspicious/noExplicitAny: tests check what the echo returns
async function echoed(path: string, init?: RequestInit): Promise<any> {
  const reply = await endpoint.fetch(path, init);
  expect(reply.status).toBe(200);
  return reply.json();
}
const header = (raw: string[], name: string): string[] =>
  raw.flatMap((each, at) => (at % 2 === 0 && each.toLowerCase() === name ? [raw[at + 1] as string] : []));
const head = (path: string, more = "") =>
  `GET /lb/${endpoint.id}${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.key}\r\n${more}Connection: close\r\n\r\n`;
const bodyOf = (text: string) => JSON.parse(text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1));

describe("a load-balanced request", () => {
  it.each(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])(
    "reaches the worker as %s, with its body",
    async (method) => {
      const body = method === "GET" ? {} : { body: `I am ${method}` };
      expect(await echoed("/things/1?a=b", { method, ...body })).toMatchObject({
        method,
        url: "/things/1?a=b",
        body: method === "GET" ? "" : `I am ${method}`,
      });
    },
  );

  it("passes without a job", async () => {
    await echoed("/");
    const { body } = await call(server, "GET", `/v2/${endpoint.id}/health`);
    expect(body.jobs).toMatchObject({ inQueue: 0, inProgress: 0, failed: 0 });
    expect(body.jobs.completed).toBeGreaterThan(0);
  });

  it.each(["/a%2Fb/%2e%2e/c", "//double//slashes", "/a/../b/./c", "/?q=%20+x&q=2", "/caf%C3%A9;p=1", "/a?b?c"])(
    "passes %s on byte for byte",
    async (path) => {
      expect(bodyOf(await exchange(server.port, head(path))).url).toBe(path);
    },
  );

  it.each([
    ["", "/"],
    ["?x=1", "/?x=1"],
    ["/", "/"],
  ])("without a path requests the root: '%s'", async (path, url) => {
    expect(bodyOf(await exchange(server.port, head(path))).url).toBe(url);
  });

  it("reaches the worker without the key and hop-by-hop headers, and with our forwarding headers", async () => {
    const more =
      "X-Own: kept\r\nX-Own: twice\r\nTE: trailers\r\nKeep-Alive: 9\r\nProxy-Authorization: Basic x\r\nX-Named: gone\r\nConnection: x-named\r\n" +
      "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nForwarded: for=6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n";
    const { rawHeaders } = bodyOf(await exchange(server.port, head("/", more)));
    for (const name of [
      "authorization",
      "te",
      "proxy-authorization",
      "x-named",
      "forwarded",
      "x_forwarded_for",
      "x-real-ip",
      "transfer-encoding",
    ])
      expect([name, header(rawHeaders, name)]).toEqual([name, []]);
    expect(header(rawHeaders, "x-own")).toEqual(["kept", "twice"]);
    expect(header(rawHeaders, "host")).toEqual(["localhost"]);
    expect(header(rawHeaders, "x-forwarded-for")).toEqual(["127.0.0.1"]);
    expect(header(rawHeaders, "x-forwarded-proto")).toEqual(["http"]);
    expect(header(rawHeaders, "x-forwarded-host")).toEqual(["localhost"]);
    expect(header(rawHeaders, "x-forwarded-prefix")).toEqual([`/lb/${endpoint.id}`]);
    expect(header(rawHeaders, "via")).toEqual(["1.1 millrace"]);
    expect(header(rawHeaders, "x-request-id")).toEqual([expect.stringMatching(/\S/)]);
    expect(JSON.stringify(rawHeaders)).not.toContain(server.key);
  });

  it("may name its endpoint by the host, in any case and on any port, and keeps its whole path", async () => {
    const to = (host: string, path: string) =>
      exchange(
        server.port,
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${server.key}\r\nConnection: close\r\n\r\n`,
      );
    const { url, rawHeaders } = bodyOf(await to(`${endpoint.id.toUpperCase()}.LB.test:8443`, "/v2/x/run?y=1"));
    expect(url).toBe("/v2/x/run?y=1");
    expect(header(rawHeaders, "x-forwarded-prefix")).toEqual([]);
    expect(await to("lb.test", "/healthz")).toContain('"status":"ok"');
    expect(await to("unknown0000000.lb.test", "/healthz")).toMatch(/^HTTP\/1.1 404 /);
  });

  it("is answered with the worker's status, headers and repeated headers, without its hop-by-hop ones", async () => {
    const text = await exchange(server.port, head("/odd-reply"));
    const [top = ""] = text.split("\r\n\r\n");
    expect(top).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    expect(top).toContain("Set-Cookie: a=1\r\nSet-Cookie: b=2");
    expect(top).toContain("X-Odd: caf\u00e9");
    expect(top).not.toMatch(/X-Hop|timeout=9/i);
  });

  it("is answered without a body to HEAD, 204 and 304, and the connection goes on", async () => {
    const bytes = ["/nothing", "/unchanged"].map((path) => head(path).replace("Connection: close\r\n", "")).join("");
    const text = await exchange(server.port, bytes + head("/").replace("GET", "HEAD"));
    expect(text.match(/HTTP\/1.1 (\d+)/g)).toEqual(["HTTP/1.1 204", "HTTP/1.1 304", "HTTP/1.1 200"]);
    expect(text).toMatch(/content-length: \d\d+/);
    expect(text.endsWith("\r\n\r\n")).toBe(true);
  });

  it("gets redirects as they are", async () => {
    const reply = await endpoint.fetch("/away");
    expect([reply.status, reply.headers.get("location")]).toEqual([302, "/elsewhere?x=1"]);
  });

  it("gets trailers and early hints", async () => {
    expect(await exchange(server.port, head("/trailers"))).toMatch(/\r\n0\r\nx-sum: 42\r\n\r\n$/);
    expect(await exchange(server.port, head("/hints"))).toMatch(
      /^HTTP\/1.1 103 Early Hints\r\n[\s\S]*HTTP\/1.1 200 OK/,
    );
  });

  it("gets the head of a reply before there is a body, and each event as it comes", async (test) => {
    const gate = join(endpoint.folder, `gate-${test.task.id}`);
    const early = await endpoint.fetch(`/head-first?gate=${gate}`);
    expect(early.headers.get("x-early")).toBe("yes");
    writeFileSync(gate, "");
    expect(await early.text()).toBe("late");

    const reply = await endpoint.fetch(`/events?gate=${gate}`);
    const reader = (reply.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    for (const n of [0, 1, 2]) {
      expect((await reader.read()).value).toBe(`data: ${n}\n\n`); // the worker sends the next only after this was read
      writeFileSync(`${gate}-${n}`, "");
    }
    expect((await reader.read()).done).toBe(true);
  });

  it("streams both ways at once", async () => {
    const asked = httpRequest(`${endpoint.base}/duplex`, { method: "POST", headers: { authorization: server.key } });
    asked.write("one");
    const reply = await new Promise<NodeJS.ReadableStream>((resolve) => asked.once("response", resolve));
    const parts = reply.setEncoding("utf8")[Symbol.asyncIterator]();
    expect((await parts.next()).value).toBe("one");
    asked.write("two");
    expect((await parts.next()).value).toBe("two");
    asked.end();
    expect((await parts.next()).done).toBe(true);
  });

  it("is asked for its body only once there is a worker", async () => {
    const post = (key: string) =>
      `POST /lb/${endpoint.id}/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${key}\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`;
    let sent = "";
    sent = await exchange(server.port, post(server.key), (text) => text.includes("100 Continue"));
    expect(sent).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    expect(await exchange(server.port, post("wrong"))).toMatch(/^HTTP\/1.1 401 /);
  });

  it("with a huge body passes in bounded memory, both ways", async () => {
    const bytes = 300 * 2 ** 20;
    const before = await residentMb(server.pid);
    const reply = await endpoint.fetch(`/large?bytes=${bytes}`);
    let got = 0;
    let most = 0;
    for await (const part of reply.body as unknown as AsyncIterable<Uint8Array>) {
      got += part.length;
      if (got % 64 < 8) most = Math.max(most, await residentMb(server.pid));
    }
    expect(got).toBe(bytes);
    expect(most - before).toBeLessThan(150); // half of the body: the server does not hold it
  });

  it("with a large body arrives whole even if its worker pauses reading, and is not buffered by us", async (test) => {
    const gate = join(endpoint.folder, `gate-${test.task.id}`);
    const part = randomBytes(2 ** 20);
    const hash = createHash("sha256");
    const before = await residentMb(server.pid);
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(to) {
        if (sent === 100) return to.close();
        sent++;
        hash.update(part);
        to.enqueue(part);
      },
    });
    const sending = endpoint.fetch(`/stuck-sink?gate=${gate}`, { method: "POST", body, duplex: "half" } as RequestInit);
    await until(() => endpoint.notes().some((note) => note.stuck));
    let last = -1;
    await until(() => {
      const stands = last === sent; // the upload has stopped
      last = sent;
      return stands;
    });
    expect(sent).toBeLessThan(60);
    expect((await residentMb(server.pid)) - before).toBeLessThan(60);
    writeFileSync(gate, "");
    expect(await (await sending).json()).toMatchObject({ bytes: 100 * 2 ** 20, sha256: hash.digest("hex") });
  });

  it("refused by the worker before it is read is still answered, and the connection ends", async () => {
    const top = `POST /lb/${endpoint.id}/refuse-body HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${server.key}\r\nContent-Length: 200000000\r\n\r\n`;
    expect(await exchange(server.port, top + "x".repeat(100_000), (text) => text.includes("too large"))).toMatch(
      /^HTTP\/1.1 413 /,
    );
  });

  it("that its client aborts ends at the worker too", async () => {
    const gone = new AbortController();
    const reply = await endpoint.fetch("/large?bytes=1000000000", { signal: gone.signal });
    expect(reply.status).toBe(200);
    gone.abort();
    await until(() => endpoint.notes().some((note) => note.closed === "large" && Number(note.left) > 0));
    await until(async () => (await call(server, "GET", `/v2/${endpoint.id}/health`)).body.jobs.inProgress === 0);
  });

  it.each([
    ["/long-header", "WORKER_FAILED"],
    ["/garbage", "WORKER_FAILED"],
  ])("is answered 502 if the worker's reply is invalid: %s", async (path, code) => {
    const reply = await endpoint.fetch(path, { method: "POST" });
    expect([reply.status, await reply.json()]).toEqual([
      502,
      { code, error: expect.stringMatching(/worker/), requestId: expect.any(String) },
    ]);
  });
});

describe("access:", () => {
  const status = async (headers: Record<string, string>, path = "/", method = "GET") =>
    (await fetch(endpoint.base + path, { method, headers })).status;

  it("requests need a key, bare or as Bearer, even preflights", async () => {
    expect(await status({ authorization: server.key })).toBe(200);
    expect(await status({ authorization: `Bearer ${server.key}` })).toBe(200);
    expect(await status({})).toBe(401);
    expect(await status({ authorization: "Bearer wrong" })).toBe(401);
    const preflight = { origin: "https://a.test", "access-control-request-method": "POST" };
    expect(await status(preflight, "/", "OPTIONS")).toBe(401);
  });

  it("the key is checked first: an unknown endpoint is 401 without a key, and 404 with one", async () => {
    const unknown = `${server.url}/lb/unknown0000000/x`;
    expect((await fetch(unknown)).status).toBe(401);
    expect((await fetch(unknown, { headers: { authorization: server.key } })).status).toBe(404);
    expect((await fetch(`${server.url}/lb/%2e/x`, { headers: { authorization: server.key } })).status).toBe(404);
  });

  it("jobs are refused: the queue routes say where requests go, and /health answers", async () => {
    for (const [method, path] of [
      ["POST", "run"],
      ["POST", "runsync"],
      ["GET", "status/x"],
      ["POST", "cancel/x"],
      ["GET", "stream/x"],
      ["GET", "requests"],
      ["POST", "purge-queue"],
      ["POST", "retry/x"],
    ] as const) {
      for (const prefix of ["/v2", "/sdk/v2"]) {
        const reply = await call(
          server,
          method,
          `${prefix}/${endpoint.id}/${path}`,
          method === "POST" ? { input: {} } : undefined,
        );
        expect([path, reply.status, reply.body.code]).toEqual([path, 400, "INVALID_STATE"]);
        expect(reply.body.error).toContain(`/lb/${endpoint.id}/`);
      }
    }
    expect((await call(server, "GET", `/v2/${endpoint.id}/health`)).body.workers.ready).toBe(1);
  });

  it("a queue-based endpoint takes no requests", async (test) => {
    const queue = await makeEndpoint(server, makeHandler(test), { workersMax: 0 });
    const reply = await call(server, "GET", `/lb/${queue}/`);
    expect([reply.status, reply.body.code]).toEqual([400, "INVALID_STATE"]);
  });
});

async function residentMb(pid: number): Promise<number> {
  const { readFile } = await import("node:fs/promises");
  return Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;
}
