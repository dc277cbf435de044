import fc from "fast-check";
import { afterAll, beforeAll, describe, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../scripts/postgres.mjs";
import { History } from "./contracts/history-fixture.js";
import { makeDatabase, openEmptied } from "./contracts/postgres-fixture.js";
import { type Opened, Scene } from "./contracts/scene.js";
import { step } from "./contracts/steps-fixture.js";
import { WorkerHistory, workerStep } from "./contracts/worker-history-fixture.js";
import { openSqlite } from "./sqlite/open.js";

let server: TestPostgres;
let url: string;
beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
  url = await makeDatabase(server, "history");
});
afterAll(() => server.end());

const inMemory = async (): Promise<Opened> => {
  const stores = openSqlite({ path: ":memory:", onFatal: () => {} });
  return { stores, reopen: undefined, end: () => stores.close() };
};

const databases = [
  { name: "SQLite", open: inMemory, numRuns: 60 },
  { name: "PostgreSQL", open: () => openEmptied(url), numRuns: 12 },
];

describe("Any history of steps in any order", () => {
  it.each(databases)(
    "gives the answers, jobs and counts that the job table defines: $name",
    { timeout: 120_000 },
    async (database) => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60, size: "max" }), async (steps) => {
          const scene = await Scene.open(database.open);
          try {
            const workers = await Promise.all([1, 2, 3].map((n) => scene.worker(`worker0000000${n}`)));
            await new History(scene, workers).run(steps);
          } finally {
            await scene.end();
          }
        }),
        { numRuns: database.numRuns },
      );
    },
  );

  it.each(databases)(
    "gives the answers and rows that the table of a worker's life defines: $name",
    {
      timeout: 120_000,
    },
    async ({ open, numRuns }) => {
      await fc.assert(
        fc.asyncProperty(fc.array(workerStep, { minLength: 20, maxLength: 100, size: "max" }), async (steps) => {
          const scene = await Scene.open(open);
          try {
            await (await WorkerHistory.open(scene)).run(steps);
          } finally {
            await scene.end();
          }
        }),
        { numRuns },
      );
    },
  );
});
