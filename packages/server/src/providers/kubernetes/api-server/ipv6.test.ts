import { once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { accessTo } from "./access-fixture.js";
import { Cluster } from "./cluster.js";
import { forAddressOf6, key } from "./tls-fixture.js";

const hasIpv6 = Object.values(networkInterfaces()).some((each) => each?.some(({ address }) => address === "::1"));

describe.skipIf(!hasIpv6)("An API server at an address of IPv6", () => {
  let server: Server;
  let cluster: Cluster;
  beforeEach(async () => {
    server = createServer({ key, cert: forAddressOf6 }, (_, reply) => reply.end('{"kind":"PodList"}'));
    const sockets = new WebSocketServer({ noServer: true });
    server.on("upgrade", (request, socket, head) =>
      sockets.handleUpgrade(request, socket, head, (each) => each.close()),
    );
    await once(server.listen(0, "::1"), "listening");
    const url = `https://[::1]:${(server.address() as AddressInfo).port}`;
    cluster = new Cluster(accessTo(url, { ca: forAddressOf6 }));
  });
  afterEach(async () => {
    await cluster.close();
    server.closeAllConnections();
    server.close();
  });

  it("is called, and its certificate is checked", async () => {
    expect(await cluster.ask("GET", "/api/v1/pods")).toEqual({ kind: "PodList" });
  });

  it("is connected to by a WebSocket", async () => {
    const socket = await cluster.openSocket("/api/v1/namespaces/n/pods/p/portforward", 1);
    const closed = once(socket, "close");
    socket.resume();
    await closed;
  });
});
