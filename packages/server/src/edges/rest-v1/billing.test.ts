import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { meterUsageLoop } from "../../loops/usage/meter-usage.js";
import { type Json, PodScene } from "../../operations/pods/pods-fixture.js";
import { l4 } from "../../testing/facts-fixture.js";
import { withTurns } from "../../testing/turns-fixture.js";
import { made, refused } from "./answers-fixture.js";

let pods: PodScene;
beforeEach(async () => {
  pods = await PodScene.open({ gpus: [l4(1), l4(2), l4(3)] });
});
afterEach(() => pods.close());

const get = (path: string): Promise<Json> => made(pods.http.get(path));
const put = (body: object, key?: string) => pods.http.call("PUT", "/v1/prices", { body, ...(key ? { key } : {}) });
const user = () => pods.scene.parts.registry.user(pods.scene.admin.ownerNo)!;
const terms = (body: object): Promise<Json> => made(pods.http.call("PATCH", `/v1/users/${user().id}`, { body }));
const bank = () => meterUsageLoop(pods.scene.parts).tick(pods.scene.clock.now(), new AbortController().signal);
const hour = 3_600_000;
const l4Type = "NVIDIA L4";
const graphql = async (query: string): Promise<Json> => (await made(pods.http.post("/graphql", { query }))).data;

describe("Prices", () => {
  it("are none at first, are set by an admin as a whole, and are read by everyone", async () => {
    expect(await get("/v1/prices")).toEqual({ gpus: {}, vcpu: 0, memoryGb: 0, volumeGb: 0 });
    const prices = { gpus: { [l4Type]: 0.44 }, vcpu: 0.01, memoryGb: 0.002, volumeGb: 0.0001 };
    expect(await made(put(prices))).toEqual(prices);
    const { key } = await pods.scene.stranger();
    await refused(put({}, key), 401, /Only an admin/);
    expect(await made(pods.http.get("/v1/prices", { key }))).toEqual(prices);
    expect(await made(put({ vcpu: 1 }))).toEqual({ gpus: {}, vcpu: 1, memoryGb: 0, volumeGb: 0 });
    await refused(put({ vcpu: -1 }), 400, /vcpu/);
    const { entries } = await get("/v1/audit?resource=prices");
    expect(entries[0]).toMatchObject({ action: "prices.update", before: { vcpu: 0.01 }, after: { vcpu: 1 } });
  });

  it("are told where GPUs, processors and pods are shown; without them they are null or 0", async () => {
    const price =
      '{ gpuTypes(input: {id: "NVIDIA L4"}) { securePrice lowestPrice(input: {gpuCount: 2}) { uninterruptablePrice } } }';
    expect((await graphql(price)).gpuTypes).toEqual([
      { securePrice: null, lowestPrice: { uninterruptablePrice: null } },
    ]);
    await put({ gpus: { [l4Type]: 0.5 }, vcpu: 0.1, memoryGb: 0.05 });
    expect((await graphql(price)).gpuTypes).toEqual([{ securePrice: 0.5, lowestPrice: { uninterruptablePrice: 1 } }]);
    const { gpus } = await get("/v2/catalog/gpus");
    expect(gpus.find(({ id }: Json) => id === l4Type).price).toEqual({ secure: 0.5, community: 0 });
    const { cpus } = await get("/v2/catalog/cpus");
    expect(cpus.find(({ id }: Json) => id === "cpu3g").price.securePerVcpu).toBeCloseTo(0.3, 9);
    const pod = await pods.create({ gpuTypeIds: [l4Type], gpuCount: 2 });
    expect(pod.costPerHr).toBe(1);
    await pods.passed();
    expect((await graphql("{ myself { currentSpendPerHr } }")).myself).toEqual({ currentSpendPerHr: 1 });
    await pods.act(pod.id, "stop");
    await pods.stopped(pod.id);
    expect((await graphql("{ myself { currentSpendPerHr } }")).myself).toEqual({ currentSpendPerHr: 0 });
  });
});

describe("A bill", () => {
  it("has what endpoints, pods and volumes used, by bucket and group, in v1 and v2", async () => {
    await put({ gpus: { [l4Type]: 2 }, volumeGb: 0.5 });
    await terms({ serverlessDiscount: 0.25 });
    const volume = await made(pods.http.post("/v1/networkvolumes", { name: "v", size: 10, dataCenterId: "CZ" }));
    const endpoint = await pods.scene.endpoint({ workersMin: 1 });
    const pod = await pods.create();
    await pods.passed();
    const { row } = pods.scene.workersOf(endpoint)[0]!;
    await pods.scene.parts.registry.changeWorker(pods.scene.workersOf(endpoint)[0]!, {
      by: "ready",
      readyAt: pods.scene.clock.now(),
    });
    await pods.passed(60_000);
    expect(row.startedAt).toBeDefined();
    await bank();
    const [ofEndpoint] = await get("/v1/billing/endpoints?bucketSize=month");
    expect(ofEndpoint).toMatchObject({ endpointId: endpoint.id, time: "2026-09-01T00:00:00.000Z" });
    expect(ofEndpoint.timeBilledMs).toBeGreaterThanOrEqual(60_000);
    expect(ofEndpoint.amount).toBeCloseTo((ofEndpoint.timeBilledMs / hour) * 2 * 0.75, 6);
    const [ofPod] = await get("/v1/billing/pods");
    expect(ofPod).toMatchObject({ gpuTypeId: l4Type });
    expect(ofPod.amount).toBeCloseTo((ofPod.timeBilledMs / hour) * 2, 6);
    expect(await get("/v1/billing/pods?grouping=podId")).toMatchObject([{ podId: pod.id, amount: ofPod.amount }]);
    expect(await get("/v1/billing/pods?podId=none")).toEqual([]);
    expect(await get(`/v1/billing/pods?gpuTypeId=${encodeURIComponent("NVIDIA A40")}`)).toEqual([]);
    expect(await get(`/v1/billing/endpoints?grouping=gpuTypeId&endpointId=${endpoint.id}`)).toMatchObject([
      { gpuTypeId: l4Type, timeBilledMs: ofEndpoint.timeBilledMs },
    ]);
    expect(await get("/v1/billing/endpoints?templateId=none")).toEqual([]);
    expect(await get(`/v1/billing/endpoints?templateId=${endpoint.settings.templateId}`)).toHaveLength(1);
    const [ofVolumes] = await get("/v1/billing/networkvolumes?bucketSize=hour");
    expect(ofVolumes.amount).toBeCloseTo((10 * 60_000 * 0.5) / hour, 3);

    const whole = await get("/v2/billing?bucketSize=year");
    expect(whole.records).toHaveLength(1);
    expect(whole.records[0]).toMatchObject({
      startTime: "2026-01-01T00:00:00.000Z",
      endTime: "2027-01-01T00:00:00.000Z",
    });
    expect(whole.metadata.totals.totalAmount).toBeCloseTo(ofEndpoint.amount + ofPod.amount + ofVolumes.amount, 6);
    const podBill = await get(`/v2/billing/pods?lastN=1&podId=${pod.id}`);
    expect(podBill).toMatchObject({
      records: [{ podId: pod.id, gpuAmount: ofPod.amount, cpuAmount: 0, diskAmount: 0 }],
      metadata: { recordCount: 1, uniquePodCount: 1, query: { podId: pod.id, bucketSize: "day" } },
    });
    expect((await get("/v2/billing/serverless")).records).toMatchObject([{ serverlessId: endpoint.id, feeAmount: 0 }]);
    for (const path of ["networkvolumes", "network-volumes"])
      expect((await get(`/v2/billing/${path}`)).records).toMatchObject([{ networkVolumeId: volume.id }]);
    for (const path of ["clusters", "endpoints"])
      expect(await get(`/v2/billing/${path}`)).toMatchObject({ records: [], metadata: { totals: { totalAmount: 0 } } });
  });

  it("has the prices, the discount and the owner that there were at the time", async () => {
    await put({ volumeGb: 3_600 });
    const one = await made(pods.http.post("/v1/users", { name: "one" }));
    const other = await made(pods.http.post("/v1/users", { name: "other" }));
    const keyOf = async ({ id }: Json) => (await made(pods.http.post("/v1/apikeys", { name: "k", userId: id }))).key;
    const [key, others] = [await keyOf(one), await keyOf(other)];
    await made(pods.http.post("/v1/networkvolumes", { name: "v", size: 1, dataCenterId: "CZ" }, { key }));
    await pods.passed(20_000);
    await put({ volumeGb: 0 });
    await pods.passed(20_000);
    await put({ volumeGb: 36_000 });
    await pods.passed(1_000);
    const amount = async (of: string) => {
      const bill = await made(pods.http.get("/v1/billing/networkvolumes?bucketSize=year", { key: of }));
      return bill.reduce((sum: number, each: Json) => sum + each.amount, 0);
    };
    await bank();
    const before = await amount(key);
    expect(before).toBeGreaterThanOrEqual(20 + 10);
    expect(before).toBeLessThan(20 + 10 * 4);
    await pods.passed(10_000);
    expect((await pods.http.call("DELETE", `/v1/users/${one.id}?transferTo=${other.id}`)).status).toBe(204);
    await bank();
    expect(await amount(others)).toBeLessThan(10 * 5);
  });

  it("is for whole buckets of the zone that is asked for", async () => {
    const { usage } = pods.scene.stores;
    const deposit = (at: string, no: number) => ({
      ...{
        kind: "pod" as const,
        no,
        ownerNo: pods.scene.admin.ownerNo,
        resource: "pod",
        gpuType: "",
        before: undefined,
      },
      mark: { amount: 1, at: Date.parse(at) },
      shares: [{ at: Date.parse(at), amount: 1_000, gpuCost: 0, cpuCost: 1_000_000_000, diskCost: 0 }],
    });
    // the last hour of May and the first of June in Berlin
    await usage.bank([deposit("2026-05-31T21:00:00Z", 1), deposit("2026-05-31T22:00:00Z", 2)]);
    const bill = async (zone: string) =>
      (
        await get(
          `/v1/billing/pods?bucketSize=month&startTime=2026-05-15T00:00:00Z&endTime=2026-06-15T00:00:00Z${zone}`,
        )
      ).map(({ time, amount }: Json) => [time, amount]);
    expect(await bill("")).toEqual([["2026-05-01T00:00:00.000Z", 2]]);
    expect(await bill("&timeZone=Europe/Berlin")).toEqual([
      ["2026-04-30T22:00:00.000Z", 1],
      ["2026-05-31T22:00:00.000Z", 1],
    ]);
  });

  it("is counted out in turns of the event loop, each bucket of a zone in one", async () => {
    const path = "/v1/billing/pods?bucketSize=day&startTime=2025-01-01T00:00:00Z&endTime=2025-12-31T00:00:00Z";
    const { value, waits } = await withTurns(() => pods.http.get(`${path}&timeZone=Asia/Kolkata`));
    expect(value.status).toBe(200);
    expect(waits).toBeGreaterThan(360);
    await refused(
      pods.http.get("/v1/billing/pods?startTime=0100-01-01T00:00:00Z&timeZone=Etc/GMT%2B12"),
      400,
      /2000 buckets/,
    );
  });

  it("is the caller's own, and refuses what it cannot be for", async () => {
    await pods.create();
    await pods.passed(60_000);
    await bank();
    expect(await get("/v1/billing/pods")).toHaveLength(1);
    const { key } = await pods.scene.stranger();
    expect(await made(pods.http.get("/v1/billing/pods", { key }))).toEqual([]);
    for (const [query, words] of [
      ["startTime=yesterday", /'startTime' must be a time/],
      ["startTime=2026-02-01T00:00:00Z&endTime=2026-01-01T00:00:00Z", /must not be after/],
      ["startTime=2020-01-01T00:00:00Z&bucketSize=hour", /2000 buckets at most/],
      ["timeZone=Moon", /'Moon' in timeZone/],
      ["bucketSize=decade", /bucketSize/],
      ["grouping=endpointId", /grouping/],
    ] as const)
      await refused(pods.http.get(`/v1/billing/pods?${query}`), 400, words);
    const { status, json } = await pods.http.get("/v2/billing/pods?lastN=2&startTime=2026-01-01T00:00:00Z");
    expect([status, json.detail]).toEqual([400, expect.stringMatching(/either 'lastN'/)]);
  });
});

describe("A user's terms", () => {
  it("are set by an admin, shown, and taken away by null", async () => {
    const given = { spendLimit: 2.5, serverlessDiscount: 0.1, quotas: { workers: 3, gpus: 1 } };
    expect(await terms(given)).toMatchObject(given);
    expect(await terms({ quotas: { gpus: null } })).toMatchObject({ spendLimit: 2.5, quotas: { workers: 3 } });
    const { myself } = await graphql(
      "{ myself { spendLimit serverlessDiscount { discountFactor type expirationDate } } }",
    );
    expect(myself).toEqual({
      spendLimit: 2.5,
      serverlessDiscount: { discountFactor: 0.1, type: "PERCENTAGE", expirationDate: null },
    });
    const cleared = await terms({ spendLimit: null, serverlessDiscount: null, quotas: null });
    expect(cleared).not.toHaveProperty("spendLimit");
    expect(cleared).not.toHaveProperty("quotas");
    await refused(
      pods.http.call("PATCH", `/v1/users/${user().id}`, { body: { quotas: { workers: -1 } } }),
      400,
      /workers/,
    );
    const { key } = await pods.scene.stranger();
    await refused(pods.http.call("PATCH", `/v1/users/${user().id}`, { body: { spendLimit: 1 }, key }), 401, /admin/);
  });

  it("let nothing start beyond a quota, and the waiting job says so", async () => {
    await terms({ quotas: { workers: 1 } });
    const first = await pods.scene.endpoint({ name: "first", workersMin: 1 });
    await pods.passed();
    const second = await pods.scene.endpoint({ name: "second" });
    const job = await pods.scene.submit(second);
    await pods.passed();
    expect(await pods.scene.status(second, job)).toMatchObject({
      waitReason: "quota_reached",
      waitDetail:
        "Your user may run 1 workers at a time, and runs 1: stop some, or ask an admin for more (quotas.workers).",
    });
    const pod = await pods.create(); // no worker of an endpoint
    await pods.passed();
    expect((await pods.show(pod.id)).status).toBe("RUNNING");
    await terms({ quotas: { workers: 2 } });
    await pods.passed();
    expect(pods.scene.workersOf(second)[0]?.row.startedAt).toBeDefined();
    expect(first.id).not.toBe(second.id);
  });

  it("let nothing start beyond the spending limit", async () => {
    await put({ gpus: { [l4Type]: 2 } });
    await terms({ spendLimit: 3 });
    await pods.create();
    await pods.passed();
    const second = await pods.create();
    await pods.passed();
    expect(await pods.show(second.id)).toMatchObject({
      status: "PROVISIONING",
      statusDetail: expect.stringMatching(/costs 2 an hour now, and one more would cost 2, beyond its limit of 3/),
    });
    await terms({ spendLimit: 4 });
    await pods.passed();
    expect((await pods.show(second.id)).status).toBe("RUNNING");
  });

  it("count pods' own volumes among the volumes", async () => {
    await terms({ quotas: { volumesGb: 30 } });
    const pod = await pods.create({ volumeInGb: 20 });
    const volume = (size: number) => pods.http.post("/v1/networkvolumes", { name: "v", size, dataCenterId: "CZ" });
    await refused(volume(11), 400, /may have 30 GB of volumes, and has 20/);
    const { id } = await made(volume(5));
    const create = (more: object) => pods.http.post("/v1/pods", { imageName: "a", ...more });
    await refused(create({ volumeInGb: 6 }), 400, /has 25: .*quotas\.volumesGb/);
    expect((await create({ networkVolumeId: id })).status).toBe(201); // its volume is counted already
    expect((await create({ volumeInGb: 0 })).status).toBe(201);
    const grow = (size: number) => pods.http.call("PATCH", `/v1/pods/${pod.id}`, { body: { volumeInGb: size } });
    await refused(grow(26), 400, /quotas\.volumesGb/);
    expect((await grow(25)).status).toBe(200);
    await pods.http.call("DELETE", `/v1/pods/${pod.id}`);
    await made(volume(25));
  });

  it("bound how much of each thing there is", async () => {
    const endpoint = await pods.scene.endpoint({ workersMax: 0 });
    await terms({ quotas: { endpoints: 1, templates: 1, keys: 1, pods: 0, volumesGb: 5, queuedJobs: 2 } });
    const create = (path: string, body: object) => pods.http.post(`/v1/${path}`, body);
    const { templateId } = endpoint.settings;
    await refused(create("endpoints", { name: "e", templateId }), 400, /may have 1 endpoints, and has 1/);
    await refused(create("templates", { name: "t", imageName: "a" }), 400, /quotas\.templates/);
    await refused(create("apikeys", { name: "k" }), 400, /quotas\.keys/);
    await refused(create("pods", { imageName: "a" }), 400, /quotas\.pods/);
    const volume = { name: "v", size: 5, dataCenterId: "CZ" };
    const { id } = await made(create("networkvolumes", volume));
    await refused(create("networkvolumes", { ...volume, size: 1 }), 400, /may have 5 GB of volumes, and has 5/);
    await refused(pods.http.call("PATCH", `/v1/networkvolumes/${id}`, { body: { size: 6 } }), 400, /quotas\.volumesGb/);
    for (let n = 0; n < 2; n++) await pods.scene.submit(endpoint);
    const full = await pods.http.post(`/v2/${endpoint.id}/run`, { input: {} });
    expect([full.status, full.json.code, full.headers.get("retry-after")]).toEqual([429, "QUEUE_FULL", "5"]);
    expect((await pods.http.post(`/v2/${endpoint.id}/openai/v1/chat/completions`, { messages: [] })).status).toBe(429);
  });
});
