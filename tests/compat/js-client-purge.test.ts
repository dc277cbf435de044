import { Agent, request } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startServer, type TestServer, until } from "../harness.js";
import { jsClient, removeFolders, waitingEndpoint } from "./stock.js";

let server: TestServer;

beforeAll(async () => {
  // The 20,000 submissions below would exceed the limit of /run.
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
});

afterAll(async () => {
  await server?.end();
  removeFolders();
});

it("answers the stock client's purge of 20,000 jobs in time, and its other calls meanwhile", async () => {
  const crowded = await waitingEndpoint(server);
  const endpoint = jsClient(server, crowded);
  const calm = jsClient(server, await waitingEndpoint(server));
  await submitMany(crowded, 20_000);
  expect((await endpoint.health()).jobs.inQueue).toBe(20_000);
  const waiter = endpoint.runSync({ input: { waits: true } }, 30_000);
  await until(async () => (await endpoint.health()).jobs.inQueue === 20_001);

  let answered = false;
  const purge = endpoint.purgeQueue().finally(() => (answered = true));
  purge.catch(() => {});
  for (let round = 0; round < 5 || !answered; round++) {
    // The client gives up after 3 s: each of these would throw.
    const { id } = await calm.run({ input: {} });
    await calm.status(id);
    await endpoint.health();
    await calm.cancel(id);
  }
  expect(await purge).toEqual({ removed: 20_001, status: "completed" });

  expect(await waiter).toMatchObject({ status: "CANCELLED", completed: true, succeeded: false });
  const later = await endpoint.run({ input: {} });
  expect(await endpoint.status(later.id)).toMatchObject({ status: "IN_QUEUE" });
  expect((await endpoint.health()).jobs.inQueue).toBe(1);
});

/** Submits many small jobs over a few keep-alive connections. */
async function submitMany(endpoint: string, count: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 48 });
  const options = {
    agent,
    method: "POST",
    headers: { authorization: server.key, "content-type": "application/json", "content-length": 12 },
  };
  const one = () =>
    new Promise<void>((done, fail) => {
      const sent = request(`${server.url}/v2/${endpoint}/run`, options, (reply) => {
        reply.resume();
        reply.on("end", () => (reply.statusCode === 200 ? done() : fail(new Error(`run: ${reply.statusCode}`))));
      });
      sent.on("error", fail);
      sent.end('{"input":{}}');
    });
  let left = count;
  const sender = async () => {
    while (left-- > 0) await one();
  };
  await Promise.all(Array.from({ length: 48 }, sender));
  agent.destroy();
}
