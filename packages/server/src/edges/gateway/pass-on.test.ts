import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import { workerChanges } from "../../testing/facts-fixture.js";
import { type Answer, type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { hostJudge } from "../shared/connections/host-names.js";
import { type Gateway, openGateway } from "./gateway.js";

let scene: Scene;
let gateway: Gateway;
let http: Http;
let endpoint: Endpoint;
/** The other server's behaviour, and the requests received by it and by this server's worker. */
let answer: (request: IncomingMessage, reply: ServerResponse) => void;
const seen: string[] = [];
let other: Server;
let worker: Server;
const listen = (server: Server) => new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
const portOf = (server: Server) => (server.address() as AddressInfo).port;
beforeAll(async () => {
  scene = await Scene.open({ here: { server: { no: ourNo, address: { host: "127.0.0.1", port: 1 } } } });
  const isOurHost = hostJudge(["localhost"], undefined);
  gateway = openGateway(scene.parts, { domain: undefined, isProxyTrusted: false, isOurHost });
  http = await openHttp(scene, { gateway });
  const hear = (request: IncomingMessage, reply: ServerResponse) => {
    seen.push(`other ${request.method}`);
    answer(request, reply);
  };
  other = createServer(hear).on("checkContinue", hear).on("upgrade", hear);
  worker = createServer((request, reply) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      seen.push(`worker ${request.method}`);
      reply.end(`served ${Buffer.concat(parts)}`);
    });
  });
  await Promise.all([listen(other), listen(worker)]);
});
beforeEach(async () => {
  await scene.advance(limits.gateAvoidMs); // no server is avoided any more
  endpoint = await scene.endpoint({ type: "LB" });
  seen.length = 0;
});
afterAll(async () => {
  await gateway.close();
  await http.close();
  for (const server of [other, worker]) {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
  await scene.close();
});

const tell = (port = portOf(other), serverNo = 9) =>
  scene.parts.gate.hear([], [{ serverNo, host: "127.0.0.1", port, open: new Set([endpoint.no]) }]);
/** The number of the server under test. */
const ourNo = 1;
const waits = () => scene.until(() => scene.parts.gate.loadOf(endpoint.no).waiting === 1);
async function openWorker(): Promise<void> {
  const live = await scene.worker(endpoint);
  const { registry } = scene.parts;
  await registry.changeWorker(live, { ...workerChanges.start, address: `127.0.0.1:${portOf(worker)}` });
  await registry.changeWorker(live, { by: "ready", readyAt: scene.clock.now() });
  scene.parts.gate.open(live);
}
const giveBack = (verdict: string) => (_request: IncomingMessage, reply: ServerResponse) =>
  void reply.writeHead(503, { "x-millrace-declined": verdict }).end("none");

describe("A request that another server has a worker for", () => {
  it("goes there from its line when the other server announces a worker", async () => {
    answer = (_request, reply) => void reply.end("from there");
    const asked = http.get(`/lb/${endpoint.id}/`);
    await waits();
    tell();
    expect((await asked).text).toBe("from there");
    expect(scene.parts.gate.loadOf(endpoint.no)).toMatchObject({ waiting: 0, inFlight: 0, completed: 0, failed: 0 });
  });

  it("stays if this server has a worker", async () => {
    await openWorker();
    tell();
    expect((await http.post(`/lb/${endpoint.id}/`, "x")).text).toBe("served x");
    expect(seen).toEqual(["worker POST"]);
  });

  it.each<[string, (request: IncomingMessage, reply: ServerResponse) => void]>([
    ["declines it", giveBack("unsent")],
    ["disconnects before it has asked for the body", (request) => void request.socket.destroy()],
  ])("stays in this server's line, with its whole body, if that server %s", async (_what, act) => {
    answer = act;
    tell();
    const asked = http.post(`/lb/${endpoint.id}/`, "body".repeat(50_000));
    await waits();
    await openWorker();
    expect((await asked).text).toBe(`served ${"body".repeat(50_000)}`);
    expect(seen).toEqual(["other POST", "worker POST"]);
  });

  it("stays in this server's line if that server cannot be reached, and is retried there after a while", async () => {
    tell(1);
    const asked = http.post(`/lb/${endpoint.id}/`, "x");
    await waits();
    answer = (request, reply) => {
      reply.writeContinue();
      request.resume().on("end", () => reply.end("from there"));
    };
    tell();
    await scene.advance(limits.gateAvoidMs - 1);
    tell();
    expect([seen, scene.parts.gate.loadOf(endpoint.no).waiting]).toEqual([[], 1]);
    await scene.advance(1);
    tell();
    expect((await asked).text).toBe("from there");
  });

  it("is not sent twice if it may have been carried out", async () => {
    answer = (request) => void request.socket.destroy();
    tell();
    const reply = await http.post(`/lb/${endpoint.id}/`);
    expect([reply.status, reply.json.code]).toEqual([502, "WORKER_FAILED"]);
    expect(seen).toEqual(["other POST"]);
  });

  it("is not served with half a body if the other server gives it back too late", async () => {
    answer = (request, reply) => {
      reply.writeContinue();
      request.once("data", () => giveBack("unsent")(request, reply));
    };
    tell();
    const asked = http.post(`/lb/${endpoint.id}/`, "body".repeat(50_000));
    await scene.until(() => seen.length > 0);
    await openWorker();
    expect((await asked).status).toBe(502);
    expect(seen).toEqual(["other POST"]);
  });

  it("is sent at most three times if it is safe to repeat", async () => {
    answer = giveBack("lost");
    tell();
    const asked = http.get(`/lb/${endpoint.id}/`);
    for (let times = 1; times < limits.gateTriesMax; times++) {
      await waits();
      expect(seen.length).toBe(times);
      await scene.advance(limits.beatMs);
      tell();
    }
    expect((await asked).status).toBe(502);
    expect(seen.length).toBe(limits.gateTriesMax);
  });

  it("gets the replies of the other server's workers whole or not at all", async () => {
    answer = (_request, reply) => {
      reply.writeHead(200, { "content-length": "100" }).write("the beginning");
      setImmediate(() => reply.destroy());
    };
    tell();
    await expect(http.get(`/lb/${endpoint.id}/`)).rejects.toThrow();
  });
});

describe("A request from another server", () => {
  /** The mark that a request to this server number was given. */
  async function marked(serverNo: number): Promise<Record<string, string>> {
    let mark = "";
    answer = (request, reply) => {
      mark = String(request.headers["x-millrace-passed-on"]);
      reply.end();
    };
    tell(portOf(other), serverNo);
    await http.get(`/lb/${endpoint.id}/`);
    return { "x-millrace-passed-on": mark };
  }
  /** Sends a request whose headers may name any host; returns its outcome. */
  async function send(headers: Record<string, string>): Promise<unknown[]> {
    const sent = request({ port: http.port, path: `/lb/${endpoint.id}/`, headers }).end();
    const [reply] = (await once(sent, "response")) as [IncomingMessage];
    reply.resume();
    return [reply.statusCode, reply.headers["x-millrace-declined"]];
  }
  const outcome = ({ status, headers }: Answer) => [status, headers.get("x-millrace-declined")];

  it("is refused by every server except the one that it was meant for", async () => {
    const headers = await marked(9);
    await openWorker();
    expect(outcome(await http.get(`/lb/${endpoint.id}/`, { headers }))).toEqual([400, "unsent"]);
  });

  it("is served without the client's key, once", async () => {
    const headers = await marked(ourNo);
    await openWorker();
    const replies = await Promise.all([1, 2].map(() => http.get(`/lb/${endpoint.id}/`, { key: null, headers })));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 400]);
    expect(seen).toEqual(["other GET", "worker GET"]);
  });

  it("is served under the host name that the first server accepted, even if this one does not answer to it", async () => {
    const named = { ...(await marked(ourNo)), host: "lb.example" };
    await openWorker();
    expect(await send(named)).toEqual([200, undefined]);
    expect(await send({ ...named, "x-millrace-passed-on": "no mark" })).toEqual([400, "unsent"]);
    expect(await send({ host: "lb.example" })).toEqual([400, undefined]);
  });

  it("is given back at once if no worker is healthy, and not passed on again", async () => {
    const headers = await marked(ourNo);
    tell();
    expect(outcome(await http.get(`/lb/${endpoint.id}/`, { key: null, headers }))).toEqual([503, "unsent"]);
    expect(seen).toEqual(["other GET"]);
  });
});
