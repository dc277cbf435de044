import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { call, makeEndpoint, startServer, until } from "../harness.js";
import { makeHandler } from "./handlers.js";
import { submit } from "./wire.js";

/** The status line of a request for `/metrics` with this Host. */
function statusFor(port: number, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("data", (data) => {
      resolve(data.toString().split("\r\n")[0] ?? "");
      socket.destroy();
    });
    socket.once("error", reject);
    socket.write(`GET /metrics HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  });
}

it("A server on loopback serves only its own host names: a page of another site cannot read it by rebinding", async () => {
  const server = await startServer({ MILLRACE_LB_DOMAIN: "lb.example.com" });
  onTestFinished(() => server.end());
  const hosts = ["evil.example", `localhost:${server.port}`, "127.0.0.1"];
  const statuses = await Promise.all(hosts.map((host) => statusFor(server.port, host)));
  expect(statuses).toEqual(["HTTP/1.1 400 Bad Request", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK"]);
});

it.each([
  { settings: {}, arrives: true },
  { settings: { MILLRACE_TRUST_PROXY: "on" }, arrives: false },
  { settings: { MILLRACE_WEBHOOK_PRIVATE: "off" }, arrives: false },
])("Webhooks reach this machine's own addresses only where no others may submit jobs: $settings", async (given) => {
  const server = await startServer(given.settings as Record<string, string>);
  onTestFinished(() => server.end());
  let posts = 0;
  const receiver = createServer((request, reply) => {
    posts++;
    request.resume();
    reply.end();
  });
  await new Promise<void>((done) => receiver.listen(0, "127.0.0.1", done));
  onTestFinished(() => void receiver.close());
  const endpoint = await makeEndpoint(server, makeHandler({ onTestFinished }), { workersMax: 0 });
  const webhook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const job = await submit(server, endpoint, {}, { webhook });
  await call(server, "POST", `/v2/${endpoint}/cancel/${job}`);
  const [attempt] = await until(async () => {
    const { body } = await call(server, "GET", `/v1/webhooks/deliveries?jobId=${job}`);
    return body[0]?.attempts.length > 0 && body[0].attempts;
  });
  expect(posts).toBe(given.arrives ? 1 : 0);
  if (given.arrives) expect(attempt.status).toBe(200);
  else expect(attempt.error).toMatch(/not a public address/);
});
