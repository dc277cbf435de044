import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, expect, it, vi } from "vitest";
import { realTime } from "../../../clock.js";
import { accessTo } from "./access-fixture.js";
import { Cluster, ClusterAway, ClusterRefusal } from "./cluster.js";
import { execIn } from "./exec.js";

let servers: Server[] = [];
let cluster: Cluster;
let sockets: Duplex[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  await cluster.close();
  for (const each of sockets) each.destroy();
  sockets = [];
  for (const server of servers) await new Promise((done) => server.close(done));
  servers = [];
});

/** An API server that accepts a command and then does this. */
async function accepts(then: (socket: Duplex) => void): Promise<string[]> {
  const asked: string[] = [];
  const server = createServer().on("upgrade", ({ url, headers }, socket) => {
    asked.push(String(url));
    sockets.push(socket);
    socket.on("error", () => {}).resume();
    socket.on("end", () => socket.destroy());
    const accept = createHash("sha1")
      .update(`${headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest("base64");
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n`,
    );
    then(socket);
  });
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  cluster = new Cluster(accessTo(url));
  return asked;
}

/** A message on a channel, as one binary frame. */
function says(channel: number, text: string): (socket: Duplex) => void {
  const payload = Buffer.concat([Buffer.from([channel]), Buffer.from(text)]);
  const length = payload.length < 126 ? [payload.length] : [126, payload.length >> 8, payload.length & 255];
  return (socket) => void socket.write(Buffer.concat([Buffer.from([0x82, ...length]), payload]));
}
const status = (value: object) => says(3, JSON.stringify(value));
const run = () => execIn(cluster, "/api/v1/namespaces/n/pods/p", "worker", ["sh", "-c", "kill -0 -1"]);

it("A command's end is what the status channel says", async () => {
  const asked = await accepts((socket) => {
    says(2, "its own words")(socket);
    status({ status: "Success" })(socket);
  });
  expect(await run()).toEqual({ code: 0, message: "" });
  expect(asked).toEqual([
    "/api/v1/namespaces/n/pods/p/exec?container=worker&stderr=true&command=sh&command=-c&command=kill+-0+-1",
  ]);
});

it("An exit code is told, and so is a program that is not there", async () => {
  const causes = [{ reason: "ExitCode", message: "127" }];
  await accepts(status({ status: "Failure", reason: "NonZeroExitCode", message: "exit 127", details: { causes } }));
  expect(await run()).toEqual({ code: 127, message: "exit 127" });
  await accepts(status({ status: "Failure", reason: "InternalError", message: "no such file" }));
  expect(await run()).toEqual({ code: undefined, message: "no such file" });
});

it("A refusal, an end without a word and a broken word are errors", async () => {
  await accepts(status({ status: "Failure", reason: "Forbidden", message: "not allowed" }));
  await expect(run()).rejects.toBeInstanceOf(ClusterRefusal);
  for (const then of [(socket: Duplex) => void socket.destroy(), says(3, "not JSON")]) {
    await accepts(then);
    await expect(run()).rejects.toBeInstanceOf(ClusterAway);
  }
});

it("A server that accepts a command and then says nothing is left after a while", async () => {
  await accepts(() => {});
  vi.spyOn(realTime, "abortAfter").mockImplementation(() => AbortSignal.timeout(100));
  await expect(run()).rejects.toBeInstanceOf(ClusterAway);
  await expect.poll(() => sockets.every((each) => each.destroyed || each.closed)).toBe(true);
});
