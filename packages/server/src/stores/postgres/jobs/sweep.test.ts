import { afterAll, beforeAll, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../../../scripts/postgres.mjs";
import { asAdmin, makeDatabase, openEmptied } from "../../contracts/postgres-fixture.js";
import { Scene } from "../../contracts/scene.js";
import type { Connection } from "../connection/connection.js";
import { Connections } from "../connection/connections.js";
import { sweepSql, sweepVerb } from "./sweep.js";

let server: TestPostgres;
let url: string;
let scene: Scene;
let connections: Connections;
beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
  url = await makeDatabase(server, "sweep");
  scene = await Scene.open(() => openEmptied(url));
  connections = new Connections(url, 1);
});
afterAll(async () => {
  await connections.close();
  await scene.end();
  await server.end();
});

it("a job whose result is stored during a sweep stays until its webhook was sent", async () => {
  const jobId = await scene.submit({ webhook: "http://127.0.0.1/", ttlEndAt: scene.now + 1_000 });
  const worker = await scene.worker("worker00000001");
  await scene.take(worker, 1);
  /** Returns the rows as they were just before the commit of the result, which creates the delivery. */
  const meanwhile = (connection: Connection): Connection => ({
    async query<Row>(text: string, values?: readonly unknown[]) {
      const rows = await connection.query<Row>(text, values);
      if (text === sweepSql.expired) {
        await asAdmin(
          url,
          `INSERT INTO delivery (job_no, job_id, endpoint_no, webhook_id, url, state, next_at)
           SELECT no, id, endpoint_no, 'msg_1', 'http://127.0.0.1/', 'pending', 1 FROM job`,
        );
      }
      return rows;
    },
  });
  const sweep = (wrap: (connection: Connection) => Connection) =>
    connections.lend((connection) =>
      sweepVerb.run({ connection: wrap(connection), lane: 1, again: false }, [[{ now: scene.now + 2_000, limit: 10 }]]),
    );
  expect(await sweep(meanwhile)).toEqual([{ deleted: 0, stopped: [], more: false }]);
  expect(await scene.stores.reader.find({ endpointNo: scene.endpointNo, jobId, now: 0 })).toMatchObject({ id: jobId });
  expect(await sweep((connection) => connection)).toEqual([{ deleted: 0, stopped: [], more: false }]);
  const [delivery] = await scene.deliveries();
  const attempt = { at: scene.now, status: 200, error: undefined, durationMs: 5 };
  await scene.stores.deliveries.record({ deliveryNo: delivery!.no, attempt, outcome: { state: "delivered" } });
  expect((await sweep((connection) => connection))[0]).toMatchObject({ stopped: [{ id: jobId }] });
});

it("a job whose delivery ends during a sweep does not wait for it forever", async () => {
  const worker = await scene.worker("worker00000002");
  const jobId = await scene.jobIn("COMPLETED", worker, { webhook: "http://127.0.0.1/", retentionMs: 1_000 });
  scene.now += 2_000;
  const delivery = (await scene.deliveries()).find((each) => each.jobId === jobId);
  let recorded: Promise<void> | undefined;
  /** The delivery ends after the sweep has seen that it is pending. */
  const meanwhile = (connection: Connection): Connection => ({
    async query<Row>(text: string, values?: readonly unknown[]) {
      const rows = await connection.query<Row>(text, values);
      if (text === sweepSql.pending) {
        const attempt = { at: scene.now, status: 200, error: undefined, durationMs: 5 };
        recorded = scene.stores.deliveries.record({
          deliveryNo: delivery!.no,
          attempt,
          outcome: { state: "delivered" },
        });
      }
      return rows;
    },
  });
  const sweep = (wrap: (connection: Connection) => Connection) =>
    connections.lend((connection) =>
      sweepVerb.run({ connection: wrap(connection), lane: 1, again: false }, [[{ now: scene.now, limit: 10 }]]),
    );
  expect(await sweep(meanwhile)).toMatchObject([{ deleted: 0 }]);
  await recorded;
  expect(await sweep((connection) => connection)).toMatchObject([{ deleted: 1 }]);
});
