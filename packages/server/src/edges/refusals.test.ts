import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { buffer } from "node:stream/consumers";
import { refusals as published } from "@millrace/api";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint, EndpointSettings } from "../domain/endpoints/endpoint.js";
import { type RefusalCode, refusals } from "../domain/refusals.js";
import { Refusal } from "../errors.js";
import { limits } from "../limits/index.js";
import { workerChanges } from "../testing/facts-fixture.js";
import { type Answer, type Http, openHttp } from "../testing/http-fixture.js";
import { Scene } from "../testing/scene-fixture.js";
import { openGateway } from "./gateway/gateway.js";
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
/** A request to a load-balancing endpoint whose worker answers by `listener`; without a listener it has no worker. */
async function balanced(
  listener: RequestListener | undefined,
  settings: Partial<EndpointSettings> = {},
): Promise<Answer> {
  const made = await scene.endpoint({ type: "LB", workersMax: listener ? 1 : 0 });
  await scene.parts.registry.saveEndpoint(made, { ...made.settings, ...settings }, undefined);
  const upstream = createServer(listener).listen(0, "127.0.0.1");
  await once(upstream, "listening");
  if (listener) {
    const worker = await scene.worker(made);
    const { port } = upstream.address() as AddressInfo;
    await scene.parts.registry.changeWorker(worker, { ...workerChanges.start, address: `127.0.0.1:${port}` });
    scene.parts.gate.open(worker);
  }
  const gateway = openGateway(scene.parts, { domain: undefined, isProxyTrusted: false });
  const answer = await behind({ gateway }, (other) => other.post(`/lb/${made.id}/`, "x"));
  await gateway.close();
  upstream.closeAllConnections();
  upstream.close();
  return answer;
}

/** The reply to a request that has not arrived in time. */
async function late(): Promise<Answer> {
  const connected = once(http.app.server, "connection");
  const client = connect(http.port, "127.0.0.1");
  const [socket] = await connected;
  http.app.server.emit("clientError", Object.assign(new Error(), { code: "ERR_HTTP_REQUEST_TIMEOUT" }), socket);
  const [head = "", text = ""] = (await buffer(client)).toString().split("\r\n\r\n");
  const [first = "", ...lines] = head.split("\r\n");
  const headers = new Headers(lines.map((line) => line.split(": ") as [string, string]));
  return { status: Number(first.split(" ")[1]), headers, text, json: JSON.parse(text) };
}
const headersOf = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`x-${n}`, "1"]));

describe("The table of refusals", () => {
  it("is the published one", () => {
    expect(refusals).toEqual(published);
  });

  const provoked: Record<RefusalCode, () => Promise<Answer>> = {
    INVALID_INPUT: () => http.post(`${base}/run`, { input: 1 }),
    INVALID_JSON: () => http.post(`${base}/run`, "{"),
    NOT_OFFERED_HERE: () => http.post("/v2/clusters", { name: "c" }),
    QUOTA_REACHED: async () => {
      await scene.quotas({ endpoints: 1 });
      const refused = await http.post("/v1/endpoints", { name: "one more", templateId: endpoint.settings.templateId });
      await scene.quotas({});
      return refused;
    },
    QUEUE_FULL: async () => {
      await scene.submit(endpoint);
      await scene.quotas({ queuedJobs: 1 });
      const refused = await http.post(`${base}/run`, { input: {} });
      await scene.quotas({});
      return refused;
    },
    INVALID_STATE: async () => {
      const id = await scene.submit(endpoint);
      return http.post(`${base}/retry/${id}`);
    },
    IDEMPOTENCY_CONFLICT: async () => {
      const headers = { "idempotency-key": "a" };
      await http.post(`${base}/run`, { input: {} }, { headers });
      return http.post(`${base}/run`, { input: { a: 1 } }, { headers });
    },
    IN_USE: () => http.call("DELETE", `/v1/endpoints/${endpoint.id}`),
    UNAUTHORIZED: () => http.get(`${base}/health`, { key: null }),
    NOT_FOUND: () => http.get("/v1/nothing"),
    ENDPOINT_NOT_FOUND: () => http.get("/v2/nothing/health"),
    JOB_NOT_FOUND: () => http.get(`${base}/status/nothing`),
    METHOD_NOT_ALLOWED: () => http.get(`${base}/run`),
    REQUEST_TIMEOUT: late,
    HEADERS_TOO_LARGE: () => http.get(`${base}/health`, { headers: headersOf(limits.headersMax + 1) }),
    LOG_ELSEWHERE: async () => {
      const worker = await scene.worker(endpoint);
      worker.row = { ...worker.row, hostNo: 77 };
      return http.get(`/v1/workers/${worker.row.id}/logs`);
    },
    PAYLOAD_TOO_LARGE: () => http.post("/v1/templates", "x".repeat(limits.managementBytesMax + 1)),
    UNSUPPORTED_ENCODING: () => http.post(`${base}/run`, "{}", { headers: { "content-encoding": "gzip" } }),
    RATE_LIMITED: async () => {
      for (let n = 0; n < 2; n++) await http.post(`${base}/purge-queue`);
      return http.post(`${base}/purge-queue`);
    },
    INTERNAL: async () => {
      const find = () => Promise.reject(new Error("SELECT secret FROM /home/me at line 1"));
      const reader = { ...methods(scene.parts.reader), find };
      return behind({ reader }, (other) => other.get(`${base}/status/any`));
    },
    NO_WORKER: () => balanced(undefined),
    WORKER_FAILED: () => balanced((request) => void request.socket.destroy()),
    WORKER_TIMEOUT: () => balanced(() => {}, { executionTimeoutMs: 50 }),
    UNAVAILABLE: () => behind(draining, (other) => other.get(`${base}/health`)),
    STORAGE_FULL: async () => {
      const submit = () => Promise.reject(new Refusal("STORAGE_FULL", "The disk is nearly full."));
      const jobs = { ...methods(scene.parts.jobs), submit };
      return behind({ jobs }, (other) => other.post(`${base}/run`, { input: {} }));
    },
  };
  it.each(Object.keys(refusals) as RefusalCode[])("is answered with the same body: %s", async (code) => {
    expectRefusal(await provoked[code](), code);
  });

  it("says when to try again if a retry may help", async () => {
    const limited = await provoked.RATE_LIMITED();
    expect(Number(limited.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(Number(limited.headers.get("retry-after"))).toBeLessThanOrEqual(10);
    expect(limited.headers.get("ratelimit-limit")).toBe("2");
    expect(limited.headers.get("ratelimit-remaining")).toBe("0");
    expect(limited.headers.get("ratelimit-reset")).toMatch(/^\d+$/);
    expect((await provoked.UNAVAILABLE()).headers.get("retry-after")).toBe("5");
  });
});

describe("The order of checks", () => {
  const tooLong = "x".repeat(limits.runBytesMax + 1);

  it("is the key, the endpoint, the rate, the size, the body", async () => {
    const path = (id: string) => `/v2/${id}/run`;
    expectRefusal(await http.post(path("nothing"), tooLong, { key: "mr_wrong" }), "UNAUTHORIZED");
    expectRefusal(await http.post(path("nothing"), tooLong), "ENDPOINT_NOT_FOUND");
    expectRefusal(await http.post(path(endpoint.id), tooLong), "PAYLOAD_TOO_LARGE");
    expectRefusal(await http.post(path(endpoint.id), "{"), "INVALID_JSON");
    for (let n = 0; n < 2; n++) await http.post(`${base}/purge-queue`);
    expectRefusal(await http.post(`${base}/purge-queue`, undefined, { key: "mr_wrong" }), "UNAUTHORIZED");
    expectRefusal(await http.post("/v2/nothing/purge-queue"), "ENDPOINT_NOT_FOUND");
    expectRefusal(await http.post(`${base}/purge-queue`), "RATE_LIMITED");
  });
});

it("A refusal for too many requests in flight names these requests, not the rate", async () => {
  const held: (() => void)[] = [];
  let bothCame = () => {};
  const both = new Promise<void>((resolve) => (bothCame = resolve));
  const list = () =>
    new Promise<never>((_, fail) => {
      if (held.push(() => fail(new Refusal("UNAVAILABLE", "It is over."))) === 2) bothCame();
    });
  const reader = { ...methods(scene.parts.reader), list };
  const refused = await behind({ reader }, async (other) => {
    const waiting = [1, 2].map(() => other.get(`${base}/requests`));
    await both;
    const third = await other.get(`${base}/requests`);
    for (const end of held) end();
    await Promise.all(waiting);
    return third;
  });
  expectRefusal(refused, "RATE_LIMITED");
  expect(refused.json.error).toMatch(/at the same time: at most 2 may wait/);
  expect(refused.json.error).not.toContain("in 10 s");
});

/** A store as a plain object, so that a test can make one of its methods fail. */
const methods = <T extends object>(store: T): T =>
  Object.fromEntries(Object.keys(store).map((verb) => [verb, store[verb as keyof T]])) as T;
