import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from "kysely";
import { endpointDefaults } from "../../domain/endpoints/endpoint.js";
import { plainRelease, workerChanges } from "../../testing/facts-fixture.js";
import { textsInPlace } from "../tables/job-row.js";
import { tableStores } from "../tables/open.js";
import type { Tables } from "../tables/schema.js";

/** Every statement of the cool tables, as the stores compile it. */
export async function coolStatements(): Promise<Record<string, string>> {
  const texts: string[] = [];
  const note = <Rows>(query: { sql: string }, rows: Rows): Rows => {
    texts.push(query.sql);
    return rows;
  };
  const dialect = {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db: Kysely<unknown>) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
  const stores = tableStores(() => ({
    sql: new Kysely<Tables>({ dialect }),
    texts: textsInPlace,
    read: async (query) => note(query, /from "receiver"/.test(query.sql) ? [{ no: 1 }] : []) as never,
    write: async (queries) =>
      queries.map((query) => note(query, [{ no: 1, settings: "{}", handle: null, exit: null }])),
  }));
  const settings = { ...endpointDefaults, name: "a", templateId: "b" };
  const { endpoints, workers, deliveries, receivers, decisions, access, hosts } = stores;
  await endpoints.all();
  await endpoints.save(1, settings, plainRelease);
  await endpoints.needed([1, 2]);
  await endpoints.remove(1, 1);
  await endpoints.noteStart(1, { present: 1, tried: 1, failedStarts: 3, at: 1, isHeld: true });
  await endpoints.noteStart(1, { present: 1, tried: 1, failedStarts: 0, at: 1, isHeld: false });
  await endpoints.release(1, 1);
  await workers.all(1);
  await workers.ofEndpoint(1, 10);
  await workers.find("worker00000001");
  await workers.change(1, workerChanges.close);
  await workers.place(1, { hostNo: 1, resources: { gpus: [], cpus: 1, memoryMib: 1 }, placedAt: 1 });
  await workers.forget(1, 1);
  await deliveries.due({ now: 1, limit: 10 });
  await deliveries.due({ now: 1, limit: 10, after: { no: 1, nextAt: 1 } });
  await deliveries.heads({ now: 1, afterEndpointNo: 0, endpoints: 10 });
  await deliveries.nextDue();
  const attempt = { at: 1, status: 200, error: undefined, durationMs: 1 };
  await deliveries.record({ deliveryNo: 1, attempt, outcome: { state: "delivered" } });
  await deliveries.list({ endpointNos: [1, 2], limit: 10 });
  await deliveries.list({ endpointNos: [1, 2], state: "failed", beforeNo: 9, limit: 10 });
  await deliveries.list({ endpointNos: [1, 2], jobId: "job", limit: 10 });
  await deliveries.find("msg");
  await deliveries.redeliver({ deliveryNo: 1, triesMax: 3, now: 1 });
  await deliveries.list({ endpointNos: [1, 2], state: "held", limit: 10 });
  await deliveries.forget(1, 1);
  await receivers.note({ id: "a", ownerNo: 1, origin: "https://a", at: 1, error: "down" }, 5);
  await receivers.list({ ownerNo: 1, state: "failing", failing: 5, limit: 10 });
  await receivers.paused([{ ownerNo: 1, origin: "https://a" }]);
  await receivers.holding([1, 2]);
  await receivers.holdingOf([1, 2]);
  await receivers.hold([{ receiverNo: 1, deliveryNo: 1, bytes: 1 }]);
  await receivers.release(1, 10);
  await receivers.forget(1, 10);
  await decisions.record({
    endpointNo: 1,
    decision: { at: 1, inputs: "", outcome: "", reason: "" },
    ended: { untilAt: 1, times: 1 },
  });
  await decisions.list(1, 10).then(() => decisions.forget(1, 1));
  await access.keys();
  await access.users();
  await hosts.ensure("host", 1);
  return Object.fromEntries(texts.map((text) => [text, text]));
}
