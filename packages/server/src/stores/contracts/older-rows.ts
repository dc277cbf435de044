import { expect } from "vitest";
import { endpointDefaults } from "../../domain/endpoints/endpoint.js";
import type { Stores } from "../../store/index.js";
import { plainTemplate } from "../../testing/facts-fixture.js";

const settings = { ...endpointDefaults, name: "it's old", templateId: "template000001" };
const quoted = (value: object) => `'${JSON.stringify(value).replaceAll("'", "''")}'`;

/**
 * The rows of a database from before endpoints had versions; one endpoint's template was deleted together with the
 * endpoint.
 */
export const olderRows = [
  `INSERT INTO template (no, id, owner_no, settings) VALUES (1, 'template000001', 1, ${quoted(plainTemplate)})`,
  `INSERT INTO endpoint (no, id, owner_no, settings, version, created_at) VALUES (1, 'endpoint000001', 1, ${quoted(settings)}, 7, 5)`,
  `INSERT INTO endpoint (no, id, owner_no, settings, version, created_at, deleted_at)
   VALUES (2, 'endpoint000002', 1, ${quoted({ ...settings, templateId: "gone" })}, 1, 5, 6)`,
  `INSERT INTO host (no, id, seen_at) VALUES (1, 'host', 1)`,
  `INSERT INTO worker (no, id, endpoint_no, version, host_no, wanted, created_at, started_at, ready_at)
   VALUES (1, 'worker00000001', 1, 7, 1, 'running', 5, 6, 7)`,
  `INSERT INTO worker (no, id, endpoint_no, version, host_no, wanted, created_at, handle)
   VALUES (2, 'worker00000002', 1, 7, 1, 'running', 5, '{"pid":12,"startTime":"34"}')`,
  `INSERT INTO worker (no, id, endpoint_no, version, host_no, wanted, created_at, handle)
   VALUES (3, 'worker00000003', 1, 7, 1, 'running', 5, '{"container":"c","address":"172.17.0.2","published":{"80":8080}}')`,
];

/** Checks that all of these rows are there, and that a new worker could be made from them. */
export async function expectOlderRows(stores: Stores): Promise<void> {
  const [endpoint] = await stores.endpoints.all();
  expect(endpoint).toMatchObject({ id: "endpoint000001", version: 7, provenVersion: 7, settings });
  expect(await stores.endpoints.release(1, 7)).toMatchObject({ n: 7, template: plainTemplate, settings });
  expect(await stores.workers.all(0)).toMatchObject([
    { id: "worker00000001", readyAt: 7, pausedAt: undefined },
    { handle: { provider: "process", ref: { pid: 12, startTime: "34" } } },
    {
      handle: {
        provider: "docker",
        ref: { container: "c" },
        network: { reachedFrom: "host", address: "172.17.0.2", published: { 80: 8080 } },
      },
    },
  ]);
}
