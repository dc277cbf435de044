import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { limits } from "../../../limits/index.js";
import { listen } from "./listen.js";

const own = limits.resetsServedPerSecond;

async function opened(port = 0) {
  const server = createHttpServer((_, reply) => reply.end("ok"));
  const listening = await listen(server, "127.0.0.1", port);
  onTestFinished(async () => {
    const closed = listening.close();
    server.closeAllConnections();
    await closed;
  });
  return { server, listening };
}

it("Many connections are accepted in each round of the event loop", async () => {
  const { server, listening } = await opened();
  const count = 4 * limits.acceptors;
  const rounds: number[] = [];
  server.on("connection", () => {
    if (rounds.length === 0 || rounds.at(-1) === 0) rounds.push(0);
    rounds[rounds.length - 1] = (rounds.at(-1) as number) + 1;
  });
  const clients = Array.from({ length: count }, () => connect(listening.port, "127.0.0.1").on("error", () => {}));
  onTestFinished(() => {
    for (const client of clients) client.destroy();
  });
  for (const until = performance.now() + 100; performance.now() < until; ); // all of them knock meanwhile
  let isOver = false;
  const round = () => {
    if (isOver) return;
    if (rounds.at(-1) !== 0) rounds.push(0);
    setImmediate(round);
  };
  round();
  const accepted = () => rounds.reduce((sum, each) => sum + each, 0);
  await expect.poll(accepted).toBe(count);
  isOver = true;
  expect(rounds.filter((each) => each > 0).length).toBeLessThan(count / 4);
});

it("A connection that its client resets before it is accepted is served, as far as others are not held up", async () => {
  Object.assign(limits, { resetsServedPerSecond: 10 });
  onTestFinished(() => void Object.assign(limits, { resetsServedPerSecond: own }));
  const { server, listening } = await opened();
  const count = 8 * limits.acceptors;
  let served = 0;
  server.on("connection", () => served++);
  const clients = Array.from({ length: count }, () => {
    const client = connect(listening.port, "127.0.0.1").on("error", () => {});
    return once(
      client.once("connect", () => client.resetAndDestroy()),
      "close",
    );
  });
  await Promise.all(clients);
  for (let n = 0; n < 2 * limits.acceptors; n++) {
    const reply = await fetch(`http://127.0.0.1:${listening.port}/`, { headers: { connection: "close" } });
    expect(await reply.text()).toBe("ok");
  }
  const resets = served - 2 * limits.acceptors;
  expect(resets).toBeGreaterThanOrEqual(10);
  expect(resets).toBeLessThan(count / 2);
});

it("A connection is served whichever socket accepts it, and all are closed in the end", async () => {
  const { listening } = await opened();
  const url = `http://127.0.0.1:${listening.port}/`;
  const replies = await Promise.all(
    Array.from({ length: 2 * limits.acceptors }, () => fetch(url, { headers: { connection: "close" } })),
  );
  expect(await Promise.all(replies.map((reply) => reply.text()))).toEqual(Array(replies.length).fill("ok"));
  await listening.close();
  await expect(fetch(url)).rejects.toThrow();
});

it("A port that another program has is refused, also if that one shares its port", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void other.close());
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  await expect(opened(port)).rejects.toMatchObject({ code: "EADDRINUSE" });
  const { listening } = await opened();
  await expect(opened(listening.port)).rejects.toMatchObject({ code: "EADDRINUSE" });
});
