import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { Grants, Rates, rateRows } from "../../rates.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

/** The allowance that all servers together grant next. */
let grant: () => Promise<number>;
let scene: Scene;
let http: Http;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
  const grants = new Grants(
    () => grant(),
    () => false,
  );
  http = await openHttp(scene, { rates: new Rates(), grants });
});
afterEach(async () => {
  await http.close();
  await scene.close();
});

const { concurrent } = rateRows.cancel;
const cancel = (signal?: AbortSignal) =>
  http.post(`/v2/${endpoint.id}/cancel/nobody`, undefined, signal ? { signal } : {});

describe("Requests that were not admitted use up no allowance:", () => {
  afterEach(async () => {
    grant = async () => 1;
    expect((await cancel()).status).toBe(404);
  });

  it("those that the shared limit refuses", async () => {
    grant = async () => 0;
    for (let n = 0; n < concurrent; n++) expect((await cancel()).status).toBe(429);
  });

  it("those that could not be counted because the database is away", async () => {
    grant = () => Promise.reject(new Error("the database is away"));
    for (let n = 0; n < concurrent; n++) expect((await cancel()).status).toBe(500);
  });

  it("those that were abandoned meanwhile", async () => {
    let asked = 0;
    let answer = () => {};
    const answered = new Promise<void>((resolve) => (answer = resolve));
    grant = () => {
      asked++;
      return answered.then(() => concurrent);
    };
    const closes: Promise<unknown>[] = [];
    http.app.server.on("request", (_, reply) => closes.push(once(reply, "close")));
    const leaving = new AbortController();
    const gone = Array.from({ length: concurrent }, () => cancel(leaving.signal).catch(() => undefined));
    await scene.until(() => asked === 1 && closes.length === concurrent);
    leaving.abort();
    await Promise.all(gone);
    await Promise.all(closes);
    answer();
    await scene.settle();
  });
});
