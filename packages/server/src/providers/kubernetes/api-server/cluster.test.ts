import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { accessTo } from "./access-fixture.js";
import { Cluster, ClusterAway, ClusterRefusal, detailOf } from "./cluster.js";

let server: Server;
let cluster: Cluster;
afterEach(async () => {
  await cluster.close();
  await new Promise((done) => server.close(done));
});

/** What a call comes to if this is the reply. */
async function askedOf(reply: (response: ServerResponse) => void): Promise<unknown> {
  server = createServer((_, response) => reply(response));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  cluster = new Cluster(accessTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  return cluster.ask("GET", "/api/v1/pods").catch((error: unknown) => error);
}

const status = (code: number, reason: string, message: string) => (response: ServerResponse) =>
  response
    .writeHead(code, { "content-type": "application/json" })
    .end(JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", reason, message, code }));
const page =
  (code: number, headers = {}) =>
  (response: ServerResponse) =>
    response.writeHead(code, { "content-type": "text/html", ...headers }).end("<html>Sign in</html>");

it.each([
  ["a page instead of an answer", page(200)],
  ["a way to a sign-in", page(302, { location: "/login" })],
  ["a proxy's refusal", page(403)],
  ["a proxy that knows no such path", page(404)],
])("What is not Kubernetes' is waited for, and no worker's fault: %s", async (_, reply) => {
  expect(await askedOf(reply)).toBeInstanceOf(ClusterAway);
});

it("Kubernetes' own refusals are told in its words", async () => {
  const refused = (await askedOf(status(403, "Forbidden", "exceeded quota: few"))) as ClusterRefusal;
  expect(refused).toBeInstanceOf(ClusterRefusal);
  expect(refused).toMatchObject({ status: 403, reason: "Forbidden", message: "exceeded quota: few" });
});

it.each([
  [500, "InternalError", 'failed calling webhook "validate.guard.example": no endpoints available'],
  [429, "TooManyRequests", 'admission webhook "calm.example" denied the request: too many pods for now'],
])("A webhook that fails, or refuses for now (%s), is named to who waits", async (code, reason, message) => {
  const away = (await askedOf(status(code, reason, message))) as ClusterAway;
  expect(away).toBeInstanceOf(ClusterAway);
  expect(away.message).toBe(`the cluster cannot do it now: ${message}`);
});

it("What else goes wrong inside a cluster is told to operators alone", async () => {
  const away = (await askedOf(status(500, "InternalError", "etcd at 10.0.0.7: no leader"))) as ClusterAway;
  expect(away.message).toBe("the cluster cannot do it now");
  expect(detailOf(away)).toContain("etcd at 10.0.0.7: no leader");
});
