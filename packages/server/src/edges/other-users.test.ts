import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Scope } from "../domain/access/key.js";
import { selectionsOf } from "./every-field-fixture.js";
import { type EveryRoute, mark, openEveryRoute, withoutIds } from "./every-route-fixture.js";
import { schema } from "./graphql/schema/index.js";

let every: EveryRoute;
const keys = new Map<string, string>();

beforeAll(async () => {
  every = await openEveryRoute();
  const { scene, http } = every;
  const stranger = await scene.user({ isAdmin: false });
  const theirs = await scene.addKey("mr_theirs", stranger);
  const own = await scene.endpoint(
    { templateId: (await scene.template({ imageName: "alpine:3" }, theirs)).id },
    theirs,
  );
  const otherOfAdmins = await scene.endpoint();
  const { ownerNo } = scene.admin;
  const scopes: [string, number, Scope][] = [
    ["another user's", stranger, { kind: "everything" }],
    ["another user's that only reads", stranger, { kind: "readOnly" }],
    ["another user's that runs an endpoint", stranger, { kind: "endpoints", access: { [own.id]: "run" } }],
    ["another user's that reads an endpoint", stranger, { kind: "endpoints", access: { [own.id]: "read" } }],
    ["another admin's", await scene.user({ isAdmin: true }), { kind: "everything" }],
    [
      "the same user's that runs another endpoint",
      ownerNo,
      { kind: "endpoints", access: { [otherOfAdmins.id]: "run" } },
    ],
    [
      "the same user's that reads another endpoint",
      ownerNo,
      { kind: "endpoints", access: { [otherOfAdmins.id]: "read" } },
    ],
  ];
  for (const [name, userNo, scope] of scopes) {
    keys.set(name, `mr_${keys.size}`);
    await scene.addKey(`mr_${keys.size - 1}`, userNo, scope);
  }
  const rotated = await scene.addKey("mr_old", stranger);
  await http.post(`/v1/apikeys/${rotated.id}/rotate`, { overlapSeconds: 3_600 }, { key: "mr_old" });
  keys.set("another user's, rotated, in its old text", "mr_old");
  keys.set("one that does not exist", "mr_nothing");
});
afterAll(() => every.close());

describe("No key but the admin's own", () => {
  it("finds a route missing here", () => {
    const urls = new Set(every.routes.map(({ url }) => url));
    expect(urls.size).toBeGreaterThan(60);
    for (const url of ["/v1/users/:userId", "/sdk/v2/:endpointId/stream/:jobId", "/v2/:endpointId/openai/*"])
      expect(urls).toContain(url);
  });

  it("sees, uses, counts or guesses anything of the admin's over any route", async () => {
    const { ids, unknown } = every;
    const before = await every.everything();
    const routes = new Set(every.routes);
    for (const [name, key] of keys) {
      for (const route of routes) {
        const { method, url } = route;
        const what = `${method} ${url} with a key that is ${name}`;
        const got = await every.call(route, key, ids);
        expect(got.text, what).not.toContain(mark);
        if (key === "mr_nothing") expect(got.status, what).toBe(401);
        if (got.status === 405) routes.delete(route); // no key gets further
        if (!/[:*]/.test(url.replace(":version", ""))) continue;
        // Admins see users and keys, but not the resources of these users.
        const isForAdmins = name === "another admin's" && /:(userId|keyId)/.test(url);
        if (!isForAdmins || method !== "GET") expect(got.status, what).toBeGreaterThanOrEqual(400);
        if (isForAdmins) continue;
        const guessed = await every.call(route, key, unknown);
        expect(withoutIds(got, ids), what).toEqual(withoutIds(guessed, unknown));
      }
    }
    expect(await every.everything()).toEqual(before);
  });

  it("sees, uses, counts or guesses anything of the admin's over any field of GraphQL", async () => {
    const before = await every.everything();
    const [query, mutation] = [schema.getQueryType(), schema.getMutationType()];
    for (const [name, key] of keys) {
      for (const [kind, type] of [
        ["query", query],
        ["mutation", mutation],
      ] as const) {
        for (const field of Object.values(type?.getFields() ?? {})) {
          for (const selected of selectionsOf(kind, field, every.given)) {
            const text = `${kind} { ${selected} }`;
            const got = await every.http.post("/graphql", { query: text }, { key });
            const what = `${text} with a key that is ${name}: ${got.text}`;
            expect(got.text.replaceAll(`named 'template ${mark}'`, ""), what).not.toContain(mark);
            if (key === "mr_nothing") expect(got.status, what).toBe(401);
            else expect([200, 401], what).toContain(got.status);
            if (kind === "mutation" && !got.json.errors) expect(got.text, what).not.toContain(every.ids.endpointId);
          }
        }
      }
    }
    expect(await every.everything()).toEqual(before);
  });

  it("can act as a worker of the admin's", async () => {
    const paths = every.routes.filter(({ url }) => /^\/v2\/:endpointId\/.*:workerId/.test(url));
    expect(paths.length).toBeGreaterThan(4);
    for (const route of paths) {
      for (const key of keys.values()) {
        const { status } = await every.call(route, key, every.ids);
        expect(status, `${route.method} ${route.url}`).toBe(401);
      }
    }
  });
});
