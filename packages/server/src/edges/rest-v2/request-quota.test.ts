import fastify from "fastify";
import { afterAll, beforeAll, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { tellProblems } from "./problems.js";
import { limitRequests, RequestQuota } from "./request-quota.js";

let scene: Scene;
beforeAll(async () => {
  scene = await Scene.open();
});
afterAll(() => scene.close());

it("A user who has made a minute's requests is refused until the next minute, and no other user is", async () => {
  let now = 60_000 * 1_000 + 48_000;
  const app = fastify();
  tellProblems(app, { emit: () => undefined });
  app.decorateRequest("caller");
  app.addHook("onRequest", async (request) => {
    request.caller = { ownerNo: Number(request.headers.owner) } as typeof request.caller;
  });
  limitRequests(app, new RequestQuota(2), { clock: { ...scene.parts.clock, now: () => now } });
  app.get("/", async () => "");
  const ask = async (owner: number) => {
    const { statusCode, headers, body } = await app.inject({ url: "/", headers: { owner: String(owner) } });
    return { statusCode, limit: headers.ratelimit, policy: headers["ratelimit-policy"], headers, body };
  };
  const policy = '"minute";q=2;w=60';
  expect(await ask(1)).toMatchObject({ statusCode: 200, limit: '"minute";r=1;t=12', policy });
  expect(await ask(1)).toMatchObject({ statusCode: 200, limit: '"minute";r=0;t=12', policy });
  for (let i = 0; i < 3; i++) {
    const refused = await ask(1);
    expect(refused).toMatchObject({ statusCode: 429, limit: '"minute";r=0;t=12', policy });
    expect(refused.headers["retry-after"]).toBe("12");
    expect(JSON.parse(refused.body)).toMatchObject({ status: 429, title: "Too Many Requests" });
  }
  expect(await ask(2)).toMatchObject({ statusCode: 200, limit: '"minute";r=1;t=12' });
  now += 12_000;
  expect(await ask(1)).toMatchObject({ statusCode: 200, limit: '"minute";r=1;t=60' });
  await app.close();
});

const q = limits.restV2PerMinuteMax;

it("Both prefixes count into one quota and show it on every reply to a known key, refusals among them", async () => {
  const http = await openHttp(scene);
  const told: number[] = [];
  for (const path of ["/v2/serverless", "/sdk/v2/templates", "/v2/pods/unknown", "/sdk/v2/templates/unknown"]) {
    const { headers } = await http.get(path);
    const { r } = /^"minute";r=(?<r>\d+);t=\d+$/.exec(headers.get("ratelimit") ?? "")?.groups ?? {};
    told.push(q - Number(r));
    expect(headers.get("ratelimit-policy")).toBe(`"minute";q=${q};w=60`);
  }
  expect(told).toEqual([1, 2, 3, 4]);
  expect((await http.get("/v2/serverless", { key: null })).headers.get("ratelimit")).toBeNull();
  expect((await http.get("/v1/endpoints")).headers.get("ratelimit")).toBeNull();
  await http.close();
});

it("Where rate limits are off nothing is shown", async () => {
  const http = await openHttp(scene, { rates: undefined });
  expect((await http.get("/v2/serverless")).headers.get("ratelimit")).toBeNull();
  await http.close();
});
