import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Client } from "undici";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Connections } from "./connections.js";

describe("the connections to a worker", () => {
  let worker: Server;
  let replies: ServerResponse[];
  let connections: Connections;

  beforeEach(async () => {
    replies = [];
    worker = createServer((_request, reply) => void replies.push(reply));
    await new Promise<void>((resolve) => worker.listen(0, "127.0.0.1", resolve));
    connections = new Connections(`http://127.0.0.1:${(worker.address() as AddressInfo).port}`, { pipelining: 1 });
  });

  afterEach(async () => {
    await connections.destroy();
    worker.closeAllConnections();
    await new Promise((resolve) => worker.close(resolve));
  });

  const open = () => new Promise<number>((resolve) => worker.getConnections((_error, count) => resolve(count)));

  /** One request on a connection, answered by the worker at once. */
  async function ask(client: Client): Promise<void> {
    const reply = client.request({ method: "GET", path: "/" });
    await vi.waitFor(() => expect(replies).toHaveLength(1));
    replies.pop()?.end("well");
    await (await reply).body.text();
  }

  it("are lent to one request at a time, the most recently used first", () => {
    const [first, second] = [connections.lend(), connections.lend()];
    expect(first).not.toBe(second);
    connections.giveBack(first, true);
    connections.giveBack(second, true);
    expect(connections.lend()).toBe(second);
    expect(connections.lend()).toBe(first);
  });

  it("are used again", async () => {
    for (let n = 0; n < 3; n++) {
      const client = connections.lend();
      await ask(client);
      connections.giveBack(client, true);
    }
    expect(await open()).toBe(1);
  });

  it("are not used again after a request that did not end properly", async () => {
    const client = connections.lend();
    await ask(client);
    connections.giveBack(client, false);
    expect(client.destroyed).toBe(true);
    expect(connections.lend()).not.toBe(client);
  });

  it("are forgotten when the worker ends them", async () => {
    const client = connections.lend();
    await ask(client);
    connections.giveBack(client, true);
    worker.closeIdleConnections();
    await vi.waitFor(() => expect(client.destroyed).toBe(true));
    expect(connections.lend()).not.toBe(client);
  });

  it("are closed when the requests in flight are over", async () => {
    const [busy, idle] = [connections.lend(), connections.lend()];
    await ask(idle);
    connections.giveBack(idle, true);
    const reply = busy.request({ method: "GET", path: "/" });
    await vi.waitFor(() => expect(replies).toHaveLength(1));
    const closed = connections.close();
    replies[0]?.end("well");
    expect(await (await reply).body.text()).toBe("well");
    connections.giveBack(busy, true);
    await closed;
    await vi.waitFor(async () => expect(await open()).toBe(0));
  });
});
