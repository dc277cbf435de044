import { expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { listJobs } from "../../operations/jobs/list-jobs.js";
import { Scene } from "../../testing/scene-fixture.js";
import type { Connections } from "./connection/connections.js";
import { postgresJobReader } from "./reader.js";
import { postgresTallyReader } from "./tallies.js";

it("A list of waiting jobs takes one query for the running jobs, and one for all positions", async () => {
  const scene = await Scene.open();
  const endpoint = await scene.endpoint();
  for (let n = 0; n < 50; n++) await scene.submit(endpoint);
  const asked: string[] = [];
  const reads = {
    read: async (text: string) => {
      asked.push(text);
      return [];
    },
  } as unknown as Connections;
  const { position } = postgresJobReader(reads, reads);
  const { holdings } = postgresTallyReader(reads);
  const reader = { ...scene.parts.reader, list: scene.stores.reader.list, position };
  const tallies = { ...scene.parts.tallies, holdings };
  const page = await listJobs({ ...scene.parts, reader, tallies }, scene.asked(endpoint), { limit: 50 }, scene.stays);
  await scene.close();
  expect(JSON.parse(`[${page.pieces.join("")}]`)).toHaveLength(50);
  expect(asked).toHaveLength(2);
});

it("A list need not wait for those of another owner's many endpoints", async () => {
  const order: number[] = [];
  const reads = {
    read: async (_text: string, [endpointNo]: readonly number[]) => {
      await new Promise(setImmediate); // a database that takes its time
      order.push(endpointNo as number);
      return [];
    },
  } as unknown as Connections;
  const { list } = postgresJobReader(reads, reads);
  const of = (ownerNo: number, endpointNo: number) =>
    list({ ownerNo, endpointNo, limit: 1, bytesMax: limits.requestsSliceBytes, now: 0 });
  await Promise.all([...Array.from({ length: 100 }, (_, n) => of(1, n)), of(2, 1_000)]);
  expect(order.indexOf(1_000)).toBeLessThan(3 * limits.pageReadersMax);
});

it("Jobs that very many ask for at once are found a few at a time", async () => {
  const counts: number[] = [];
  const reads = {
    read: async (_text: string, [endpointNos]: readonly Buffer[]) => {
      counts.push((endpointNos as Buffer).readInt32BE(12));
      return [];
    },
  } as unknown as Connections;
  const { find } = postgresJobReader(reads, reads);
  const asked = 3 * limits.foundPerTurn;
  await Promise.all(Array.from({ length: asked }, (_, n) => find({ endpointNo: 1, jobId: `job ${n}`, now: 0 })));
  expect(counts).toEqual(Array(3).fill(limits.foundPerTurn));
});
