import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { call, until } from "../harness.js";
import { type Cluster, type Member, startCluster } from "../servers/cluster.js";
import { makeBalanced } from "./balanced.js";

let cluster: Cluster;
let members: readonly [Member, Member];
beforeAll(async () => {
  cluster = await startCluster(2);
  members = cluster.members as unknown as [Member, Member];
});
afterAll(() => cluster?.end());

it("two servers each send requests to the workers of their own host, and count them together", async (test) => {
  const [here, there] = members;
  const endpoint = await makeBalanced(test, here, { workersMin: 2, workersMax: 2 });
  const ask = (server: Member, path: string) =>
    fetch(`${server.url}/lb/${endpoint.id}${path}`, { headers: { authorization: server.key } });
  // Until both are ready, a request may go to the other server's worker.
  await until(async () => (await call(here, "GET", `/v2/${endpoint.id}/health`)).body.workers.idle === 2);
  const pids = await Promise.all(
    members.map(async (server) => ((await (await ask(server, "/")).json()) as { pid: number }).pid),
  );
  expect(new Set(pids).size).toBe(2);
  const gate = join(endpoint.folder, "gate");
  const held = members.map((server) => ask(server, `/slow?gate=${gate}`));
  for (const server of members) {
    const health = async () => (await call(server, "GET", `/v2/${endpoint.id}/health`)).body;
    await until(async () => (await health()).jobs.inProgress === 2);
    expect((await health()).workers.running).toBe(2);
  }
  writeFileSync(gate, "");
  for (const reply of await Promise.all(held)) expect(await reply.text()).toBe("done");
  expect(there.url).not.toBe(here.url);
});

it("a request that waits at either server lets workers start, whichever server decides", async (test) => {
  for (const server of members) {
    const settings = { workersMax: 2, scalerType: "REQUEST_COUNT", scalerValue: 1 };
    const endpoint = await makeBalanced(test, server, settings);
    const ask = (path: string) =>
      fetch(`${server.url}/lb/${endpoint.id}${path}`, { headers: { authorization: server.key } });
    // Two waiting requests need two workers: one of them runs on this server's host.
    const replies = await Promise.all([ask("/1"), ask("/2")]);
    expect(replies.map(({ status }) => status)).toEqual([200, 200]);
  }
});
