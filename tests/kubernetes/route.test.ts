import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { WebSocket } from "undici";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeNodeImage } from "../../scripts/images.mjs";
import { writeKubeconfig } from "../../scripts/kubernetes/certificates.mjs";
import { startCluster, type TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { call, makeEndpoint, root, type TestServer, until } from "../harness.js";
import { clusterStartMs, namespace, podsIn, startClusterServer } from "./scene.js";

/** Load balancing workers of a server outside the cluster that does not reach their addresses: they listen on loopback. */
const image = "millrace.test/node:1";
let cluster: TestCluster;
let server: TestServer;
let endpoint: string;
/** Of the account that the guide makes. */
let KUBECONFIG: string;
beforeAll(async () => {
  cluster = await startCluster();
  makeNodeImage(cluster, image, { handler: join(root, "tests/lb/echo.mjs") });
  cluster.kubectl("create", "namespace", namespace);
  cluster.kubectl("apply", `--namespace=${namespace}`, `--filename=${join(root, "deploy/kubernetes/rights.yaml")}`);
  const token = cluster.kubectl("create", "token", "millrace", `--namespace=${namespace}`);
  KUBECONFIG = writeKubeconfig(cluster.home, "rights", { api: new URL(cluster.url).port, user: { token } });
  server = await startClusterServer(cluster, { KUBECONFIG });
  endpoint = await balanced(server);
}, clusterStartMs);
afterAll(async () => {
  await server?.end();
  await cluster?.end();
});

const balanced = (of: TestServer, env: Record<string, string> = {}) =>
  makeEndpoint(
    of,
    image,
    {
      type: "LB",
      computeType: "CPU",
      vcpuCount: 1,
      workersMax: 1,
      idleTimeout: 600,
      scalerType: "REQUEST_COUNT",
      scalerValue: 10,
    },
    { dockerEntrypoint: [process.execPath], dockerStartCmd: ["/app/handler.mjs"], env },
  );

const headers = () => ({ authorization: `Bearer ${server.key}` });
const ask = (path: string, init: RequestInit = {}) =>
  fetch(`${server.url}/lb/${endpoint}${path}`, { ...init, headers: { ...headers(), ...init.headers } });

it("Requests reach them through the API server, with bodies of any size", { timeout: 120_000 }, async () => {
  const first = await ask("/some/path?a=1", { headers: { "x-own": "kept" } });
  expect(first.status, server.log()).toBe(200);
  const seen = (await first.json()) as { url: string; rawHeaders: string[] };
  expect(seen.url).toBe("/some/path?a=1");
  expect(seen.rawHeaders).toContain("kept");

  const body = randomBytes(20_000_000);
  const sunk = await ask("/sink", { method: "POST", body });
  expect(await sunk.json()).toMatchObject({ sha256: createHash("sha256").update(body).digest("hex") });

  const large = await ask("/large?bytes=50000000");
  let bytes = 0;
  for await (const part of large.body ?? []) bytes += part.length;
  expect(bytes).toBe(50_000_000);

  const many = await Promise.all(Array.from({ length: 100 }, (_, n) => ask(`/n/${n}`)));
  expect(await Promise.all(many.map(async (reply) => ((await reply.json()) as { url: string }).url))).toEqual(
    many.map((_, n) => `/n/${n}`),
  );
});

it("A WebSocket is open both ways for as long as both want it", { timeout: 60_000 }, async () => {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/lb/${endpoint}/socket`, { headers: headers() });
  const said: string[] = [];
  socket.addEventListener("message", ({ data }) => said.push(String(data)));
  await new Promise((opened) => socket.addEventListener("open", opened));
  for (const text of ["one", "two"]) socket.send(text);
  await expect.poll(() => said).toEqual(["one", "two"]);
  const closed = new Promise((done) => socket.addEventListener("close", done));
  socket.close();
  await closed;
});

it("An API server that is away costs no worker: requests wait for it", { timeout: 120_000 }, async () => {
  const before = podsIn(cluster);
  await cluster.stop("api");
  await until(
    () =>
      server
        .log()
        .includes("it cannot be reached: the API server of its cluster does not lead to it now (the cluster at"),
    30_000,
  );
  const waiting = ask("/patient");
  // longer than a worker may fail to answer
  await new Promise((done) => setTimeout(done, 32_000));
  cluster.start("api");
  expect((await waiting).status).toBe(200);
  expect(podsIn(cluster)).toEqual(before);
  expect(server.log()).not.toMatch(/not answered GET \/ping with 200 for too long/);
});

it("A server that reaches pods' addresses may be told to use them", { timeout: 120_000 }, async () => {
  await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`); // the node has few processors
  await expect.poll(() => podsIn(cluster), { timeout: 60_000 }).toEqual([]);
  const direct = await startClusterServer(cluster, { KUBECONFIG, MILLRACE_KUBERNETES_ROUTE: "pods" });
  try {
    // on loopback alone, a worker is not reached so
    const hidden = await balanced(direct);
    const endpointOf = (id: string) => fetch(`${direct.url}/lb/${id}/any`, { headers: { authorization: direct.key } });
    const refused = endpointOf(hidden);
    const open = await balanced(direct, { ECHO_HOST: "0.0.0.0" });
    expect((await endpointOf(open)).status).toBe(200);
    const workers = await call(direct, "GET", `/v1/endpoints/${hidden}/workers`);
    expect(JSON.stringify(workers.body)).not.toContain('"idle"');
    await call(direct, "DELETE", `/sdk/v1/endpoints/${hidden}`);
    expect((await refused).status).toBe(404);
  } finally {
    await direct.end();
  }
});
