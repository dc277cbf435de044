import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../../config.js";
import { type Http, openHttp } from "../../../testing/http-fixture.js";
import { Scene } from "../../../testing/scene-fixture.js";
import { type Gateway, openGateway } from "../../gateway/gateway.js";
import { hostJudge } from "./host-names.js";

const judgeOf = (env: Record<string, string>) => {
  const { hostNames, lbDomain } = readConfig(env);
  return hostJudge(hostNames, lbDomain);
};
const names = { MILLRACE_HOST_NAMES: "Api.Example.com, other" };
const anywhere = { MILLRACE_HOST: "0.0.0.0" };

describe("A request's Host", () => {
  it.each([
    { host: undefined, env: {}, isOurs: true },
    { host: "", env: {}, isOurs: true },
    { host: "localhost", env: {}, isOurs: true },
    { host: "LocalHost:8000", env: {}, isOurs: true },
    { host: "localhost.:8000", env: {}, isOurs: true },
    { host: "api.localhost", env: {}, isOurs: true },
    { host: "127.0.0.1:8000", env: {}, isOurs: true },
    { host: "127.9.9.9", env: {}, isOurs: true },
    { host: "[::1]:8000", env: {}, isOurs: true },
    { host: "172.17.0.1:8000", env: {}, isOurs: true },
    { host: "evil.example", env: {}, isOurs: false },
    { host: "evil.example:8000", env: {}, isOurs: false },
    { host: "localhost.evil.example", env: {}, isOurs: false },
    { host: "evillocalhost", env: {}, isOurs: false },
    { host: "127.0.0.1.evil.example", env: {}, isOurs: false },
    { host: "127.0.0.1:80:evil.example", env: {}, isOurs: false },
    { host: "evil.example@127.0.0.1", env: {}, isOurs: false },
    { host: "api.example.com", env: {}, isOurs: false },
    { host: "api.example.com:443", env: names, isOurs: true },
    { host: "OTHER", env: names, isOurs: true },
    { host: "localhost", env: names, isOurs: true },
    { host: "evil.example", env: names, isOurs: false },
    { host: "evil.example", env: anywhere, isOurs: true },
    { host: "evil.example", env: { ...anywhere, ...names }, isOurs: false },
    { host: "10.0.0.7:8000", env: { ...anywhere, ...names }, isOurs: true },
    { host: "evil.example", env: { MILLRACE_TRUST_PROXY: "on" }, isOurs: true },
    { host: "evil.example", env: { MILLRACE_TRUST_PROXY: "on", ...names }, isOurs: false },
    { host: "a1.lb.example.com:80", env: { MILLRACE_LB_DOMAIN: "lb.example.com" }, isOurs: true },
    { host: "lb.example.com", env: { MILLRACE_LB_DOMAIN: "LB.example.com" }, isOurs: true },
    { host: "evil-lb.example.com", env: { MILLRACE_LB_DOMAIN: "lb.example.com" }, isOurs: false },
    {
      host: "host.docker.internal:8000",
      env: { MILLRACE_WORKER_URL: "http://host.docker.internal:8000" },
      isOurs: true,
    },
  ])("$host is ours with $env: $isOurs", ({ host, env, isOurs }) => {
    const judge = judgeOf(env);
    expect(judge(host)).toBe(isOurs);
    expect(judge(host)).toBe(isOurs);
  });
});

describe("On loopback, a web page whose DNS name was rebound", () => {
  let scene: Scene;
  let http: Http;
  let gateway: Gateway;
  beforeAll(async () => {
    scene = await Scene.open();
    const isOurHost = judgeOf({});
    gateway = openGateway(scene.parts, { domain: undefined, isProxyTrusted: false, isOurHost });
    http = await openHttp(scene, { gateway, isOurHost });
  });
  afterAll(async () => {
    await gateway.close();
    await http.close();
    await scene.close();
  });

  const send = async (host: string, line: string, more = "") => {
    const socket = connect(http.port, "127.0.0.1");
    socket.write(`${line} HTTP/1.1\r\nhost: ${host}\r\nauthorization: ${scene.key}\r\n${more}\r\n`);
    const [data] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    return data.toString("latin1");
  };
  const webSocket = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n";

  it("can read nothing, and the operator is told which setting to change", async () => {
    const endpoint = await scene.endpoint();
    const balanced = await scene.endpoint({ type: "LB", workersMax: 0 });
    const lines: [line: string, more?: string][] = [
      ["GET /metrics"],
      ["GET /v1/endpoints"],
      ["POST /graphql", "content-length: 2\r\n\r\n{}"],
      [`POST /v2/${endpoint.id}/run`, 'content-length: 12\r\n\r\n{"input":{}}'],
      [`GET /lb/${balanced.id}/`],
      [`GET /lb/${balanced.id}/`, webSocket],
      ["GET /healthz", webSocket],
    ];
    for (const [line, more] of lines) {
      const answer = await send("evil.example:8000", line, more);
      expect(answer, line).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer, line).toContain("'evil.example:8000': add it to MILLRACE_HOST_NAMES");
    }
    expect((await scene.health(endpoint)).waiting).toBe(0);
    expect(await send(`localhost:${http.port}`, "GET /metrics")).toMatch(/^HTTP\/1\.1 200 /);
  });
});
