import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JobAccess } from "../domain/access/key.js";
import type { Answer } from "../testing/http-fixture.js";
import { selectionsOf } from "./every-field-fixture.js";
import { type EveryRoute, mark, openEveryRoute, type Route } from "./every-route-fixture.js";
import { schema } from "./graphql/schema/index.js";
import { made } from "./rest-v1/answers-fixture.js";

let every: EveryRoute;
/** All routes but those that only refuse a method, which do so for every key. */
const offered: Route[] = [];
beforeAll(async () => {
  every = await openEveryRoute();
  const { key } = await every.scene.stranger();
  for (const route of every.routes)
    if ((await every.callBriefly(route, key, every.unknown))?.status !== 405) offered.push(route);
});
afterAll(() => every.close());

const wordsOf = ({ method, url }: Route) => `${method} ${url}`;
/** Whether a reply is the one for a key that may not do this; REST v2 says it with 403. */
const isForbidden = (answer: Answer | undefined) => answer?.status === 401 || answer?.status === 403;
const isChange = ({ method }: Route) => method !== "GET";
/** The routes that workers call with their own secrets. */
const isOfWorkers = ({ url }: Route) => /^\/v2\/:endpointId\/.*:workerId/.test(url);
const isManagement = ({ url }: Route) => /^(\/sdk)?(\/v1\/|\/v2\/[a-z])/.test(url);

/** Every field of GraphQL's queries or mutations, with the reply to a key. */
async function fields(kind: "query" | "mutation", key: string): Promise<[string, Answer][]> {
  const type = kind === "query" ? schema.getQueryType() : schema.getMutationType();
  const texts = Object.values(type?.getFields() ?? {}).flatMap((field) => selectionsOf(kind, field, every.given));
  const answers: [string, Answer][] = [];
  for (const each of texts) {
    const text = `${kind} { ${each} }`;
    answers.push([text, await every.http.post("/graphql", { query: text }, { key })]);
  }
  return answers;
}

/** A key of the admin itself; without a scope it may do everything. */
const newKey = (more: object = {}) => made(every.http.post("/v1/apikeys", { name: "k", ...more }));
const rotate = (id: string, overlapSeconds: number) =>
  made(every.http.post(`/v1/apikeys/${id}/rotate`, { overlapSeconds }));

describe("A key of the admin's that has ended", () => {
  const ends: [string, () => Promise<string>][] = [
    [
      "by its expiry",
      async () => {
        const { key } = await newKey({ expiresAt: new Date(every.scene.clock.now() + 60_000).toISOString() });
        await every.scene.advance(60_000);
        return key;
      },
    ],
    [
      "by being revoked",
      async () => {
        const { key, id } = await newKey();
        expect((await every.http.call("DELETE", `/v1/apikeys/${id}`)).status).toBe(204);
        return key;
      },
    ],
    [
      "by a rotation whose overlap is over",
      async () => {
        const { key, id } = await newKey();
        await rotate(id, 60);
        await every.scene.advance(60_000);
        return key;
      },
    ],
  ];

  it.each(ends)("%s gets 401 from every route and for every field of GraphQL", async (_, end) => {
    const key = await end();
    const before = await every.everything();
    for (const route of offered) {
      const got = await every.call(route, key, every.ids);
      expect(got.status, wordsOf(route)).toBe(401);
      expect(got.text, wordsOf(route)).not.toContain(mark);
    }
    for (const [text, { status }] of [...(await fields("query", key)), ...(await fields("mutation", key))])
      expect(status, text).toBe(401);
    expect(await every.everything()).toEqual(before);
  });
});

describe("The old text of a rotated key, within the overlap,", () => {
  it("is admitted to every route that admits the new text, except to changes of users and keys", async () => {
    const { key: old, id } = await newKey();
    const { key: fresh } = await rotate(id, 3_600);
    const refused: string[] = [];
    for (const route of offered) {
      const ids = isChange(route) ? every.unknown : every.ids;
      const withOld = await every.callBriefly(route, old, ids);
      const withNew = await every.callBriefly(route, fresh, ids);
      if (isForbidden(withOld) && !isForbidden(withNew)) refused.push(wordsOf(route));
      else expect(isForbidden(withOld), wordsOf(route)).toBe(isForbidden(withNew));
    }
    const ofAccess = offered.filter((route) => isChange(route) && /\/v1\/(users|apikeys)/.test(route.url));
    expect(refused).toEqual(ofAccess.map(wordsOf));
  });
});

describe("A key of a chosen endpoint", () => {
  const keys = new Map<JobAccess, string>();
  beforeAll(async () => {
    for (const access of ["read", "run"] as const) {
      const { key } = await newKey({ scope: { endpoints: [{ id: every.endpoint.id, access }] } });
      keys.set(access, key);
    }
  });
  const access: JobAccess[] = ["read", "run"];

  it("changes its jobs with `run`, and only reads them with `read`", async () => {
    const onlyRuns: string[] = [];
    for (const route of offered
      .filter(({ url }) => /^\/v2\/:endpointId/.test(url))
      .filter((each) => !isOfWorkers(each))) {
      const runs = await every.callBriefly(route, keys.get("run") ?? "", every.ids);
      if (runs?.status === 405) continue;
      expect(isForbidden(runs), wordsOf(route)).toBe(false);
      if (isForbidden(await every.callBriefly(route, keys.get("read") ?? "", every.ids))) onlyRuns.push(wordsOf(route));
    }
    expect(onlyRuns).toEqual([
      "POST /v2/:endpointId/run",
      "POST /v2/:endpointId/runsync",
      "POST /v2/:endpointId/cancel/:jobId",
      "POST /v2/:endpointId/retry/:jobId",
      "POST /v2/:endpointId/purge-queue",
      "GET /v2/:endpointId/openai/*",
      "POST /v2/:endpointId/openai/*",
    ]);
  });

  /** What belongs to endpoints, and what belongs to nobody or does not exist here. */
  const ofEndpoints = /\/v[12]\/(endpoints|serverless|workers|templates|network-?volumes)(\/|$)/;
  const ofNobody = /\/v[12]\/(prices|catalog\/(gpus|cpus|datacenters)|registries\/delegations|clusters|global-volumes)/;
  it.each(access)("with `%s` changes nothing over management, and sees nothing but its endpoint", async (access) => {
    const key = keys.get(access) ?? "";
    const before = await every.everything();
    const seen: string[] = [];
    const own = new RegExp(`(endpoint|template|volume|job) ${mark}`, "g"); // but no values of variables
    for (const route of offered.filter(isManagement)) {
      const got = await every.callBriefly(route, key, every.ids);
      if (isChange(route)) expect(isForbidden(got), wordsOf(route)).toBe(true);
      else if (!isForbidden(got)) seen.push(route.url);
      expect(got?.text.replaceAll(own, "") ?? "", wordsOf(route)).not.toContain(mark);
    }
    expect(seen.filter((url) => !ofEndpoints.test(url) && !ofNobody.test(url))).toEqual([]);
    for (const [text, got] of await fields("query", key))
      expect(got.text.replaceAll(own, ""), text).not.toContain(mark);
    for (const [text, { status }] of await fields("mutation", key)) expect(status, text).toBe(401);
    expect(await every.everything()).toEqual(before);
  });
});
