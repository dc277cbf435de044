import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApiKey, Scope } from "../domain/access/key.js";
import { selectionsOf } from "./every-field-fixture.js";
import { type EveryRoute, fill, openEveryRoute } from "./every-route-fixture.js";
import { schema } from "./graphql/schema/index.js";

let every: EveryRoute;
/** Keys of a member and of a part of the admin's, with the ids of what each of them sees. */
const keys = new Map<string, { key: string; ids: Record<string, string> }>();

beforeAll(async () => {
  every = await openEveryRoute();
  const { scene } = every;
  const addKeys = async (whose: string, owner: ApiKey, own: Awaited<ReturnType<typeof fill>>, kinds: string[]) => {
    const scopes: Record<string, Scope> = {
      everything: { kind: "everything" },
      reads: { kind: "readOnly" },
      "runs an endpoint": { kind: "endpoints", access: { [own.endpoint.id]: "run" } },
      "reads an endpoint": { kind: "endpoints", access: { [own.endpoint.id]: "read" } },
    };
    for (const kind of kinds) {
      const key = `mr_unseen-${keys.size}`;
      await scene.addKey(key, owner.ownerNo, scopes[kind]);
      keys.set(`${whose}: ${kind}`, { key, ids: own.ids });
    }
  };
  const { caller } = await scene.stranger();
  const theirs = await fill(scene, caller, "the-members-own");
  await addKeys("a member", caller, theirs, ["everything", "reads", "runs an endpoint", "reads an endpoint"]);
  const part = await fill(scene, scene.admin, "a-part");
  await addKeys("the same user", scene.admin, part, ["runs an endpoint", "reads an endpoint"]);
  await scene.settle();
});
afterAll(() => every.close());

/** Stands for a call that is answered only when something happens. */
const held = "held";

/** What a key is told by every route that reads, and by every query, as text by call. */
async function told(key: string, ids: Record<string, string>): Promise<Map<string, string>> {
  const seen = new Map<string, string>();
  const plain = (text: string) => text.replace(/,?"(requestId|lastUsedAt)":"[^"]*"/g, "");
  for (const route of every.routes.filter(({ method, url }) => method === "GET" && !/openai/.test(url))) {
    const got = await every.callBriefly(route, key, ids);
    seen.set(`GET ${route.url}`, got ? `${got.status} ${plain(got.text)}` : held);
  }
  const given = (name: string) => ({ id: ids.endpointId })[name] ?? ids[name];
  for (const field of Object.values(schema.getQueryType()?.getFields() ?? {})) {
    for (const selected of selectionsOf("query", field, given)) {
      const got = await every.http.post("/graphql", { query: `query { ${selected} }` }, { key });
      seen.set(selected.slice(0, 200), plain(got.text));
    }
  }
  return seen;
}

describe("What a key cannot see", () => {
  it("changes nothing that it is told", async () => {
    const before = new Map<string, Map<string, string>>();
    for (const [name, { key, ids }] of keys) before.set(name, await told(key, ids));
    await fill(every.scene, every.scene.admin, "another-thing-of-the-admins");
    await fill(every.scene, (await every.scene.stranger()).caller, "a-third-users");
    const differing: string[] = [];
    const compared = new Set<string>();
    for (const [name, { key, ids }] of keys) {
      const after = await told(key, ids);
      for (const [call, text] of after) {
        const was = before.get(name)?.get(call);
        // a route that may hold is left as soon as it does: only what was answered both times can differ
        if (was === held || text === held) continue;
        compared.add(call);
        if (was !== text) differing.push(`${name}: ${call}\n  ${was}\n  ${text}`);
      }
    }
    expect(differing).toEqual([]);
    expect(compared.size).toBeGreaterThan(250);
  });
});
