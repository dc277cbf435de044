import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Worker } from "../../../domain/workers/worker.js";
import { addressText } from "../../../domain/workers/worker-address.js";
import { Dialler } from "./dialler.js";

const hasIpv6 = Object.values(networkInterfaces()).some((each) => each?.some(({ address }) => address === "::1"));

describe.each(hasIpv6 ? ["127.0.0.1", "::1"] : ["127.0.0.1"])("A worker at %s", (host) => {
  let server: Server;
  let row: Worker;
  const dialler = new Dialler({ hostNo: 1, clusters: [] });
  beforeEach(async () => {
    server = createServer(({ url, headers }, reply) => reply.end(`${url} ${headers.host}`));
    await once(server.listen(0, host), "listening");
    const { port } = server.address() as AddressInfo;
    const handle = { provider: "kubernetes", ref: {}, network: { reachedFrom: "anywhere", address: host } };
    row = { no: 7, hostNo: 1, address: addressText({ host, port, healthPort: port }), handle } as unknown as Worker;
  });
  afterEach(async () => {
    await dialler.close();
    server.closeAllConnections();
    server.close();
  });

  it("is asked for its health", async () => {
    expect(await dialler.ping(row)).toBe("ready");
  });

  it("is sent requests", async () => {
    const client = dialler.connections(row)?.lend();
    const reply = await client?.request({ method: "GET", path: "/any" });
    expect(await reply?.body.text()).toBe(`/any ${row.address}`);
  });
});
