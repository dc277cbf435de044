import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import { Scene } from "../../testing/scene-fixture.js";
import { type JobPage, listJobs } from "./list-jobs.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
});
afterEach(() => scene.close());

describe("The list of jobs", () => {
  const list = (query: Partial<Parameters<typeof listJobs>[2]> = {}) =>
    listJobs(scene.parts, scene.asked(endpoint), { limit: 50, ...query }, scene.stays);
  const jobsIn = ({ pieces }: Pick<JobPage, "pieces">): { id: string; output?: unknown }[] =>
    JSON.parse(`[${Buffer.concat(pieces.map((piece) => Buffer.from(piece)))}]`);
  const idsOf = (page: Pick<JobPage, "pieces">) => jobsIn(page).map(({ id }) => id);

  it("has the newest first, in pages, and each job once", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.unshift(await scene.submit(endpoint));
    const first = await list({ limit: 2 });
    expect(idsOf(first)).toEqual(ids.slice(0, 2));
    const second = await list({ limit: 2, beforeNo: first.nextNo! });
    expect(idsOf(second)).toEqual(ids.slice(2, 4));
    const last = await list({ limit: 2, beforeNo: second.nextNo! });
    expect(idsOf(last)).toEqual(ids.slice(4));
    expect(last.nextNo).toBeUndefined();
  });

  it("ends a page if its outputs become large, and continues from there", async () => {
    const worker = await scene.worker(endpoint);
    const [large, ids] = ["x".repeat(limits.requestsPageBytesMax * 0.6), [] as string[]];
    for (const output of [large, large, 1, 2]) {
      const id = await scene.running(endpoint, worker);
      await scene.done(worker, id, { output });
      ids.unshift(id);
    }
    const first = await list();
    expect(idsOf(first)).toEqual(ids.slice(0, 3));
    const last = await list({ beforeNo: first.nextNo! });
    expect([idsOf(last), last.nextNo]).toEqual([ids.slice(3), undefined]);
    expect(scene.parts.shares.heldBytes).toBeGreaterThan(2 * large.length);
    first.release();
    last.release();
    expect(scene.parts.shares.heldBytes).toBe(0);
  });

  it("shows a job that is larger than a page by itself", async () => {
    const worker = await scene.worker(endpoint);
    const large = "x".repeat(limits.requestsPageBytesMax + 1);
    const ids: string[] = [];
    for (const output of [1, large, 2]) {
      const id = await scene.running(endpoint, worker);
      await scene.done(worker, id, { output });
      ids.unshift(id);
    }
    const first = await list();
    expect(idsOf(first)).toEqual([ids[0]]);
    first.release();
    const second = await list({ beforeNo: first.nextNo! });
    expect(jobsIn(second).map(({ id, output }) => [id, output === large])).toEqual([[ids[1], true]]);
    expect(scene.parts.shares.heldBytes).toBeGreaterThan(limits.requestsPageBytesMax);
    second.release();
    expect(scene.parts.shares.heldBytes).toBe(0);
    expect(idsOf(await list({ beforeNo: second.nextNo! }))).toEqual([ids[2]]);
  });

  it("shows one status, one endpoint, and nothing that has expired", async () => {
    const worker = await scene.worker(endpoint);
    const done = await scene.running(endpoint, worker);
    await scene.done(worker, done);
    await scene.submit(endpoint, { input: {}, policy: { ttl: 10_000 } });
    const waits = await scene.submit(endpoint);
    await scene.submit(await scene.endpoint());
    await scene.advance(10_000);
    expect(idsOf(await list())).toEqual([waits, done]);
    expect(idsOf(await list({ status: "COMPLETED" }))).toEqual([done]);
  });
});
