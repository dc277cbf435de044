import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AuditEntry } from "../domain/access/audit.js";
import type { Answer } from "../testing/http-fixture.js";
import { graphqlChanges, hidden, type NewThings, newThings, restChanges } from "./changes-fixture.js";
import { selectionsOf } from "./every-field-fixture.js";
import { type EveryRoute, filled, openEveryRoute, type Route } from "./every-route-fixture.js";
import { schema } from "./graphql/schema/index.js";

/** Routes that take a body and are no changes of resources, with the reason. */
const exceptions: readonly [RegExp, string][] = [
  [/^\/v2\/:endpointId\/.*:workerId/, "workers call them, with their own secrets"],
  [/^\/v2\/:endpointId\/(run|runsync|openai\/\*)$/, "a submission makes a job, which is kept with its own times"],
  [/^\/v2\/:endpointId\/(status|status-sync|stream)\/:jobId$/, "a read, which some clients send as POST"],
  [/^\/v2\/:endpointId\/(cancel|retry)\/:jobId$/, "clients make thousands of them; each job keeps its own times"],
  [/^\/v2\/(clusters|global-volumes|registries\/delegations)/, "these do not exist here, and cannot be made"],
  [/^\/sign-in\/once$/, "it shows the key of the first start once, to the reader of the server's own output"],
  [/^\/graphql\/?$/, "its mutations are tried one by one"],
];

let every: EveryRoute;
let make: NewThings;
beforeAll(async () => {
  every = await openEveryRoute();
  make = newThings(every.scene, every.http);
  every.scene.sender.status = 200;
  every.scene.run(every.scene.loops.deliver());
});
afterAll(() => every.close());

let requests = 0;
/** Makes a call under a request id of its own, and reads what the audit log has of it. */
async function recorded(
  method: string,
  path: string,
  body?: object,
): Promise<{ answer: Answer; entries: AuditEntry[] }> {
  const requestId = `change-${++requests}`;
  const headers = { "x-request-id": requestId };
  const answer = await every.http.call(method, path, { headers, ...(body === undefined ? {} : { body }) });
  const { entries } = await every.scene.stores.audit.list({ limit: 20 });
  return { answer, entries: entries.filter((entry) => entry.requestId === requestId) };
}

/** Each entry says who made the change, with which key, from where and what; none holds a secret. */
function expectEntry(what: string, action: string, entries: AuditEntry[], { json }: Answer): void {
  const { admin, parts } = every.scene;
  expect(
    entries.map((entry) => entry.action),
    what,
  ).toContain(action);
  for (const entry of entries)
    expect(entry, what).toMatchObject({
      userId: parts.registry.user(admin.ownerNo)?.id,
      keyId: admin.id,
      keyPrefix: admin.prefix,
      address: "127.0.0.1",
      resource: expect.stringMatching(/./),
    });
  const entry = entries.find((each) => each.action === action);
  if (action.endsWith(".create")) expect([entry?.before, typeof entry?.after], what).toEqual([undefined, "object"]);
  if (action.endsWith(".delete")) expect([typeof entry?.before, entry?.after], what).toEqual(["object", undefined]);
  const shownOnce: unknown[] = [json?.key, json?.webhookSecret, json?.secret];
  for (const secret of [hidden, ...shownOnce.filter(Boolean)])
    expect(JSON.stringify(entries), what).not.toContain(secret);
}

const isExcepted = ({ url }: Route) => exceptions.some(([path]) => path.test(url.replace(/^\/sdk/, "")));
/** Whether the same body changes nothing when it is sent again. A secret's value is not compared with the stored one. */
const isUpdate = (route: Route) => /^(PATCH|PUT) (?!\/v1\/secrets\/)/.test(nameOf(route));
const changing = () => every.routes.filter(({ method }) => method !== "GET");
/** The name of a change: `POST …/update` is PATCH for clients that cannot send it. */
const nameOf = ({ method, url }: Route) =>
  `${method} ${url}`.replace(" /sdk/", " /").replace(/^POST (.*)\/update$/, "PATCH $1");

/** A new thing for each parameter of a route. */
async function newIds(url: string): Promise<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const [, name = ""] of url.matchAll(/:(\w+)/g)) {
    values[name] = (await make[name as keyof NewThings]?.()) ?? "";
  }
  return values;
}

describe("The audit log", () => {
  it("excepts no route that does not exist", () => {
    for (const [path, why] of exceptions)
      expect(
        changing().some(({ url }) => path.test(url)),
        why,
      ).toBe(true);
  });

  it("has every change over REST, and nothing of one that is refused", async () => {
    const known = restChanges(make, every.http);
    const unused = new Set(Object.keys(known));
    for (const route of changing().filter((each) => !isExcepted(each))) {
      const what = `${route.method} ${route.url}`;
      const change = known[nameOf(route)];
      unused.delete(nameOf(route));
      const values = change ? every.unknown : every.ids;
      const refused = await recorded(route.method, filled(route.url, values), {});
      if (!change) {
        expect(refused.answer.status, `${what} has neither a call nor an exception here`).toBe(405);
        continue;
      }
      if (/:/.test(route.url)) expect(refused.answer.status, what).toBeGreaterThanOrEqual(400);
      if (refused.answer.status >= 400) expect(refused.entries, what).toEqual([]);
      const path = filled(route.url, (await change.ids?.()) ?? (await newIds(route.url)));
      const body = (await change.body?.()) ?? {};
      const { answer, entries } = await recorded(route.method, path, body);
      expect(answer.status, `${what}: ${answer.text}`).toBeLessThan(300);
      expectEntry(what, change.action, entries, answer);
      const again = await recorded(route.method, path, body);
      if (again.answer.status >= 400 || isUpdate(route)) expect(again.entries, `${what}, once more`).toEqual([]);
      if (!isUpdate(route)) continue;
      const empty = await recorded(route.method, path, {});
      if (!/prices|ssh-keys/.test(path)) expect(empty.entries, `${what} without a field`).toEqual([]);
    }
    expect([...unused]).toEqual([]);
  });

  it("has every mutation of GraphQL, unless it is only offered elsewhere", async () => {
    const known = graphqlChanges(make);
    for (const field of Object.values(schema.getMutationType()?.getFields() ?? {})) {
      const [action, call] = known[field.name] ?? [];
      if (call === undefined || action === undefined) {
        const resolve = `mutation { ${selectionsOf("mutation", field, () => undefined)[0]} }`;
        const { answer } = await recorded("POST", "/graphql", { query: resolve });
        expect(answer.json.errors?.[0].extensions.code, field.name).toBe("NOT_OFFERED_HERE");
        continue;
      }
      const { answer, entries } = await recorded("POST", "/graphql", { query: `mutation { ${await call()} }` });
      expect(answer.json.errors, `${field.name}: ${answer.text}`).toBeUndefined();
      expectEntry(field.name, action, entries, answer);
    }
  });

  it("has nothing of a mutation that changes nothing", async () => {
    const endpointId = await make.endpointId();
    const { json } = await every.http.get(`/v1/endpoints/${endpointId}`);
    const id = await make.templateId();
    const { name } = (await every.http.get(`/v1/templates/${id}`)).json;
    const image = `imageName: "an/image", dockerArgs: "", env: [{ key: "TOKEN", value: "${hidden}" }]`;
    for (const mutation of [
      `saveEndpoint(input: { id: "${endpointId}", name: "${json.name}" }) { id }`,
      `saveEndpoint(input: { id: "${endpointId}", name: "${json.name}", workersMax: 0 }) { id }`,
      `updateEndpointTemplate(input: { endpointId: "${endpointId}", templateId: "${json.templateId}" }) { id }`,
      `saveTemplate(input: { id: "${id}", name: "${name}", ${image}, containerDiskInGb: 50, volumeInGb: 20 }) { id }`,
      `podResume(input: { podId: "${await make.podId()}", gpuCount: 1 }) { id }`,
      'updateUserSettings(input: { pubKey: "" }) { id }',
    ]) {
      const query = `mutation { ${mutation} }`;
      await recorded("POST", "/graphql", { query });
      const { answer, entries } = await recorded("POST", "/graphql", { query });
      expect(answer.json.errors, `${mutation}: ${answer.text}`).toBeUndefined();
      expect(entries, mutation).toEqual([]);
    }
  });

  it("says that saving an endpoint without a change has ended the pause after its failed starts", async () => {
    const id = await make.endpointId();
    const { registry } = every.scene.parts;
    await registry.noteStart(registry.endpoint(id)!, 1, { failedStarts: 2, at: 1, verdict: "it broke" });
    const { entries } = await recorded("PATCH", `/v1/endpoints/${id}`, {});
    expect(entries).toMatchObject([{ before: { failedStarts: 2 }, after: { failedStarts: 0 } }]);
    expect((await recorded("PATCH", `/v1/endpoints/${id}`, {})).entries).toEqual([]);
  });
});
