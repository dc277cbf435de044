import { getIntrospectionQuery } from "graphql";
import { afterAll, beforeAll, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
beforeAll(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
});
afterAll(async () => {
  await http.close();
  await scene.close();
});

/** All types' fields, under many aliases each. */
const wide = (
  aliases: number,
) => `{ __schema { types { ${Array.from({ length: aliases }, (_, n) => `a${n}: fields { ...Field }`)} } } }
  fragment Field on __Field { name args { name type { name kind } } type { name kind ofType { name kind ofType { name } } } }`;
const nested = `{ __schema { types { fields { type { ...Type ofType { ...Type ofType { ...Type } } } } } } }
  fragment Type on __Type { ${Array.from({ length: 100 }, (_, n) => `a${n}: fields { ...Field }`)} }
  fragment Field on __Field { name args { name } }`;

it("Tools that ask for the whole schema get it, and so does a query for each type's fields", async () => {
  const { status, json } = await http.post("/graphql", { query: getIntrospectionQuery() });
  expect([status, json.errors]).toEqual([200, undefined]);
  expect(json.data.__schema.types.length).toBeGreaterThan(50);
  expect((await http.post("/graphql", { query: wide(1) })).status).toBe(200);
});

it.each([
  ["many aliases", wide(60)],
  ["types within types", nested],
])("A query for more of it than one turn can hold is refused: %s", async (_, query) => {
  const { status, json } = await http.post("/graphql", { query });
  expect(status).toBe(400);
  expect(json.errors[0]).toMatchObject({
    message: expect.stringContaining(`more than ${limits.graphqlIntrospectedMax} values about the schema`),
    extensions: { code: "INVALID_INPUT" },
  });
});
