import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../../limits/index.js";
import { type Http, openHttp } from "../../../testing/http-fixture.js";
import { Scene } from "../../../testing/scene-fixture.js";
import { type Gateway, openGateway } from "../../gateway/gateway.js";

let scene: Scene;
let http: Http;
let gateway: Gateway;
beforeAll(async () => {
  scene = await Scene.open();
  gateway = openGateway(scene.parts, { domain: undefined, isProxyTrusted: false });
  http = await openHttp(scene, { gateway });
});
afterAll(async () => {
  await gateway.close();
  await http.close();
  await scene.close();
});

/** Sends a request unchanged, and returns the first bytes of the answer. */
async function send(line: string, ...headers: string[]): Promise<string> {
  const socket = connect(http.port, "127.0.0.1");
  socket.write(`${[line, "host: localhost", ...headers].join("\r\n")}\r\n\r\n`);
  const [data] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  return data.toString("latin1");
}

describe("A request that could be misread is refused", () => {
  it("with a second Authorization header, whichever of the two is right, on every interface", async () => {
    const right = `authorization: Bearer ${scene.key}`;
    const queued = await scene.endpoint();
    const balanced = await scene.endpoint({ type: "LB", workersMax: 0 });
    const lines = ["GET /v1/endpoints", `POST /v2/${queued.id}/run`, "POST /graphql", `GET /lb/${balanced.id}/`];
    for (const line of lines) {
      for (const second of [right, "Authorization: Bearer mr_other"]) {
        const answer = await send(`${line} HTTP/1.1`, right, second, "content-length: 0");
        expect(answer, line).toMatch(/^HTTP\/1\.1 400 /);
        expect(answer, line).toContain("more than one Authorization header");
      }
    }
  });

  it.each(["2.0", "0.9"])("under another version of HTTP: %s", async (version) => {
    const answer = await send(`GET /healthz HTTP/${version}`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain(`and not HTTP/${version}.`);
  });

  it("with TRACE, on any path, with the allowed methods in the reply", async () => {
    const balanced = await scene.endpoint({ type: "LB", workersMax: 0 });
    for (const path of ["/healthz", "/v1/endpoints", "/graphql", `/lb/${balanced.id}/`, "/nothing"]) {
      const answer = await send(`TRACE ${path} HTTP/1.1`, `authorization: ${scene.key}`);
      expect(answer, path).toMatch(/^HTTP\/1\.1 405 /);
      expect(answer, path).toMatch(/^allow: GET, .*POST/im);
    }
  });
});

describe("A refusal's headers say", () => {
  it("that a key belongs in Authorization, on every interface", async () => {
    const balanced = await scene.endpoint({ type: "LB", workersMax: 0 });
    for (const path of ["/v1/endpoints", `/v2/${balanced.id}/health`, `/lb/${balanced.id}/`]) {
      const answer = await http.get(path, { key: null });
      expect([path, answer.status, answer.headers.get("www-authenticate")]).toEqual([path, 401, "Bearer"]);
    }
    const graphql = await http.post("/graphql", { query: "{ myself { id } }" }, { key: "mr_wrong" });
    expect([graphql.status, graphql.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    expect((await http.get("/v1/endpoints")).headers.get("www-authenticate")).toBeNull();
  });
});

describe("A GraphQL request", () => {
  it.each(["/graphql", "/sdk/graphql"])(
    "to %s that is too large is refused while it is still being sent",
    async (path) => {
      const query = `{ myself { id } } #${"x".repeat(12 * limits.managementBytesMax)}`;
      const { status, json } = await http.post(path, { query });
      expect([status, json.errors[0].extensions.code]).toEqual([413, "PAYLOAD_TOO_LARGE"]);
      expect(json.errors[0].message).toContain("0.25 MB");
      expect(scene.events).not.toContainEqual(expect.objectContaining({ type: "request.failed" }));
    },
  );
});
