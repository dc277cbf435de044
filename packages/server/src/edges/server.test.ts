import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import { limits } from "../limits/index.js";
import { cancelJob } from "../operations/jobs/change-job.js";
import { type Answer, type Http, openHttp } from "../testing/http-fixture.js";
import { Scene } from "../testing/scene-fixture.js";
import { expectRefusal } from "./refusal-fixture.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
let base: string;
beforeAll(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
});
beforeEach(async () => {
  endpoint = await scene.endpoint();
  base = `/v2/${endpoint.id}`;
});
afterAll(async () => {
  await http.close();
  await scene.close();
});

/** Runs one call against the same scene with other parts. */
async function behind(more: Parameters<typeof openHttp>[1], act: (other: Http) => Promise<Answer>): Promise<Answer> {
  const other = await openHttp(scene, more);
  return act(other).finally(other.close);
}
const draining = { draining: AbortSignal.abort() };

describe("X-Request-ID", () => {
  const idFor = async (given: string) => {
    const answer = await http.get("/healthz", { headers: { "x-request-id": given } });
    return answer.headers.get("x-request-id");
  };

  it.each(["abc-123", "~", "x".repeat(128), "a;b,c=d/e"])("is echoed if it is visible ASCII: '%s'", async (given) => {
    expect(await idFor(given)).toBe(given);
  });

  it.each(["x".repeat(129), "a b", "caf\u00e9", ""])(
    "is replaced by the server's if it is not: '%s'",
    async (given) => {
      expect(await idFor(given)).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    },
  );

  it("is on every reply, and always different", async () => {
    const [one, two] = [await http.get("/healthz"), await http.get("/healthz")];
    expect(one.headers.get("x-request-id")).not.toBe(two.headers.get("x-request-id"));
  });
});

describe("A body", () => {
  it("at its limit is read, and one byte over it is refused", async () => {
    const sized = (bytes: number) => `{"input":{"a":"${"x".repeat(bytes - 18)}"}}`;
    expect(sized(100)).toHaveLength(100);
    expect((await http.post(`${base}/run`, sized(limits.runBytesMax))).status).toBe(200);
    expectRefusal(await http.post(`${base}/run`, sized(limits.runBytesMax + 1)), "PAYLOAD_TOO_LARGE");
  });

  it("that announces too many bytes is refused before it is sent", async () => {
    const head = `POST ${base}/run HTTP/1.1\r\nhost: x\r\nauthorization: ${scene.key}\r\ncontent-length: 99999999\r\n\r\n`;
    expect(await raw(head)).toMatch(/^HTTP\/1.1 413 /);
  });

  it("without a length is refused when the count passes the limit", async () => {
    const stream = new ReadableStream({
      pull(controller) {
        controller.enqueue(Buffer.alloc(1_048_576, 0x20));
      },
    });
    const init = { method: "POST", body: stream, duplex: "half", headers: { authorization: scene.key } };
    const reply = await fetch(`${http.url}${base}/run`, init as RequestInit).catch(() => undefined);
    expect([413, undefined]).toContain(reply?.status);
    expect((await scene.health(endpoint)).waiting).toBe(0);
  });

  it.each(["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "nonsense", ""])(
    "is JSON under any label: '%s'",
    async (label) => {
      const headers = { "content-type": label };
      expect((await http.post(`${base}/run`, '{"input":{}}', { headers })).status).toBe(200);
    },
  );

  it("is ignored with its content type if the route takes none", async () => {
    const id = await scene.submit(endpoint);
    const headers = { "content-type": "application/json" };
    expect((await http.post(`${base}/cancel/${id}`, "{no json", { headers })).status).toBe(200);
    expect((await http.post(`${base}/status/${id}`, "", { headers })).status).toBe(200);
    const volume = await http.call("DELETE", "/v1/networkvolumes/nothing", { headers, body: "" });
    expect(volume.status).toBe(400);
  });

  it.each(["gzip", "br", "deflate"])("with the content encoding %s is refused: 415", async (encoding) => {
    const headers = { "content-encoding": encoding };
    for (const path of [`${base}/run`, `${base}/runsync`, "/v1/templates"]) {
      expectRefusal(await http.post(path, "{}", { headers }), "UNSUPPORTED_ENCODING");
    }
    expect(
      (await http.post(`${base}/run`, { input: {} }, { headers: { "content-encoding": "identity" } })).status,
    ).toBe(200);
  });
});

describe("A request", () => {
  it.each([
    ["with two Host headers", "GET /healthz HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n"],
    ["with two Host headers in one", "GET /healthz HTTP/1.1\r\nhost: a, b\r\n\r\n"],
    [
      "whose second Host header comes after thousands of others",
      `GET /healthz HTTP/1.1\r\nhost: a\r\n${"a:b\r\n".repeat(2_100)}host: b\r\n\r\n`,
    ],
    ["without a Host header", "GET /healthz HTTP/1.1\r\n\r\n"],
    ["whose target is a whole URL", "GET http://elsewhere/healthz HTTP/1.1\r\nhost: a\r\n\r\n"],
  ])("%s is refused", async (_, head) => {
    expect(await raw(head)).toMatch(/^HTTP\/1.1 400 /);
  });

  it("with too many headers is refused before they are parsed", async () => {
    const reply = await raw(`GET /v2 HTTP/1.1\r\nhost: a\r\n${"a:\r\n".repeat(limits.headersMax)}\r\n`);
    expect(reply).toMatch(/^HTTP\/1.1 431 /);
    expect(reply).toContain("headers are too large or too many");
  });

  it("to an unknown path is 404, and its reply does not repeat a long path", async () => {
    const { text } = await http.get(`/${"%25".repeat(4_000)}`, { key: null });
    expect(text.length).toBeLessThan(400);
    expectRefusal(await http.get(`/v1/${"x".repeat(4_000)}`), "NOT_FOUND");
  });

  it("to an unknown path is 404, and under /v1 and /v2 only with a key", async () => {
    expectRefusal(await http.get("/nothing", { key: null }), "NOT_FOUND");
    expectRefusal(await http.get("/v1/nothing", { key: null }), "UNAUTHORIZED");
    expectRefusal(await http.get("/v1/nothing"), "NOT_FOUND");
  });

  it("with a method that its path does not allow is 405 with the allowed ones, after the key and the endpoint", async () => {
    const answer = await http.call("PUT", "/v1/endpoints");
    expectRefusal(answer, "METHOD_NOT_ALLOWED");
    expect(answer.headers.get("allow")).toBe("GET, POST");
    expectRefusal(await http.call("DELETE", `${base}/status/any`, { body: "{}" }), "METHOD_NOT_ALLOWED");
    expectRefusal(await http.call("PUT", "/v1/endpoints", { key: null }), "UNAUTHORIZED");
    expectRefusal(await http.get("/v2/nothing/run"), "ENDPOINT_NOT_FOUND");
  });

  it("that repeats a parameter is refused if only one value makes sense, and never fails", async () => {
    const id = await scene.submit(endpoint);
    const worker = await scene.worker(endpoint);
    for (const path of [`stream/${id}?wait=1&wait=2`, `status-sync/${id}?wait=1&wait=2`, `status/${id}?ttl=1&ttl=2`]) {
      expectRefusal(await http.get(`${base}/${path}`), "INVALID_INPUT");
    }
    expectRefusal(await http.get(`${base}/ping/${worker.row.id}?token=a&token=b`), "UNAUTHORIZED");
    expect((await http.get("/v1/webhooks/deliveries?jobId=a&jobId=b")).json).toEqual([]);
  });

  it("while the server stops is refused, except /healthz and workers' calls", async () => {
    const worker = await scene.worker(endpoint);
    const key = `secret-of-${worker.row.id}`;
    await behind(draining, async (other) => {
      for (const path of [`${base}/health`, "/v1/endpoints", "/readyz"]) {
        expectRefusal(await other.get(path), "UNAVAILABLE");
      }
      expect((await other.post("/graphql", { query: "{ myself { id } }" })).status).toBe(503);
      expect((await other.get(`${base}/ping/${worker.row.id}`, { key })).status).toBe(200);
      const alive = await other.get("/healthz");
      expect(alive.status).toBe(200);
      return alive;
    });
  });
});

describe("A page for operators", () => {
  it("is open on loopback, and metrics need a key from elsewhere", async () => {
    expect((await http.get("/healthz", { key: null })).json).toEqual({
      status: "ok",
      runtime: `Node.js ${process.versions.node}`,
    });
    expect((await http.get("/readyz", { key: null })).json).toEqual({ status: "ready" });
    expect((await http.get("/metrics", { key: null })).text).toBe("up 1\n");
    const elsewhere = { method: "GET", url: "/metrics", remoteAddress: "10.0.0.7" } as const;
    expect((await http.app.inject(elsewhere)).statusCode).toBe(401);
    const headers = { authorization: scene.key };
    expect((await http.app.inject({ ...elsewhere, headers })).statusCode).toBe(200);
  });
});

it("A rate limit applies to one operation of one endpoint, and ends with its window", async () => {
  const other = await scene.endpoint();
  for (let n = 0; n < 3; n++) await http.post(`${base}/purge-queue`);
  expect((await http.post(`/v2/${other.id}/purge-queue`)).status).toBe(200);
  const id = await scene.submit(endpoint);
  await cancelJob(scene.parts, endpoint, id);
  expect((await http.post(`${base}/cancel/${id}`)).status).toBe(200);
  await scene.advance(10_100);
  expect((await http.post(`${base}/purge-queue`)).status).toBe(200);
});

/** Sends bytes as they are, and returns the head of the answer. */
function raw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(http.port, "127.0.0.1", () => socket.write(text));
    socket.on("error", reject);
    socket.once("data", (data) => {
      resolve(data.toString("latin1"));
      socket.destroy();
    });
  });
}
