import { beforeAll, describe, expect, it } from "vitest";
import { overflow, violations } from "../looks.js";
import { makeEndpoint, press, sees, useDashboard } from "./visit.js";

const dashboard = useDashboard({ MILLRACE_RATE_LIMITS: "off", MILLRACE_STOP_GRACE: "1" });
let folder: string;
let idle: string;
beforeAll(async () => {
  folder = dashboard.handler("export default () => process.env.TOKEN ?? 1;");
  idle = await makeEndpoint(dashboard, folder, { name: "without-workers", workersMax: 0 });
});

/** A handler whose job goes on until its worker ends. */
const slow = "export default () => new Promise((done) => setTimeout(done, 600_000));";

describe("A job that is tried", () => {
  it("has the webhook and the policy that were filled in, and so has the code to paste", async () => {
    const page = await dashboard.visit(`/endpoints/${idle}/try`);
    await page.getByText("Webhook, policy and storage").click();
    await page.getByLabel("webhook").fill("http://127.0.0.1:9/tried");
    await page.getByLabel("executionTimeout").fill("60000");
    await page.getByLabel("lowPriority").check();
    await page.getByLabel("bucketName").fill("results");
    await page.getByLabel("accessSecret").fill("not-to-be-shown");
    expect(await violations(page)).toEqual([]);
    const snippet = page.getByRole("region", { name: "The same from your code" }).locator("code");
    for (const name of ["curl", "Python", "TypeScript"]) {
      await press(page, name);
      expect(await snippet.textContent()).toMatch(/http:\/\/127\.0\.0\.1:9\/tried.*60000.*results/);
      expect(await snippet.textContent()).not.toContain("not-to-be-shown");
    }
    await press(page, "command line");
    const flags = "--webhook 'http://127.0.0.1:9/tried' --execution-timeout 60000 --low-priority";
    expect(await snippet.textContent()).toContain(flags);
    await press(page, "Run");
    await sees(page, "waiting");
    const { requests } = await dashboard.api("GET", `/v2/${idle}/requests`);
    expect(await dashboard.api("GET", `/v1/endpoints/${idle}/jobs/${requests[0].id}`)).toMatchObject({
      webhook: "http://127.0.0.1:9/tried",
      executionTimeoutMs: 60_000,
      lowPriority: true,
    });
  });
});

describe("A job that is run again", () => {
  it("has the webhook and the policy of the first, which can be changed", async () => {
    const policy = { executionTimeout: 70_000, lowPriority: true };
    const first = { input: { n: 1 }, webhook: "http://127.0.0.1:9/first", policy };
    const { id } = await dashboard.api("POST", `/v2/${idle}/run`, first);
    const page = await dashboard.visit(`/endpoints/${idle}/jobs/${id}`);
    await page.getByRole("link", { name: "Run again, with changes" }).click();
    await page.getByText("Webhook, policy and storage").click();
    await page.getByLabel("webhook").fill("");
    await press(page, "Run");
    const sent = (await page.locator("#watched a").textContent()) ?? "";
    const again = await dashboard.api("GET", `/v1/endpoints/${idle}/jobs/${sent}`);
    expect(again).toMatchObject({ executionTimeoutMs: 70_000, lowPriority: true });
    expect(again).not.toHaveProperty("webhook");
  });
});

describe("Waiting jobs", () => {
  it("are all cancelled once the endpoint's name is typed", async () => {
    const endpoint = await makeEndpoint(dashboard, folder, { name: "purged", workersMax: 0 });
    const page = await dashboard.visit(`/endpoints/${endpoint}`);
    await sees(page, "No request yet");
    expect(await page.getByRole("button", { name: "Cancel all waiting" }).count()).toBe(0);
    for (let n = 0; n < 3; n++) await dashboard.api("POST", `/v2/${endpoint}/run`, { input: {} });
    await press(page, "Cancel all waiting");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("3 jobs are waiting").waitFor();
    await dialog.getByLabel("Type purged to go on").fill("purged");
    await dialog.getByRole("button", { name: "Cancel all waiting" }).click();
    await dialog.waitFor({ state: "detached" });
    await expect.poll(async () => (await dashboard.api("GET", `/v2/${endpoint}/health`)).jobs.inQueue).toBe(0);
    await expect.poll(() => page.getByRole("row").filter({ hasText: "cancelled" }).count()).toBe(3);
  });
});

describe("A worker that does not end its job", () => {
  it("is stopped now, and the job starts again on another", async () => {
    const id = await makeEndpoint(dashboard, dashboard.handler(slow), { name: "stuck", workersMax: 2 });
    const job = await dashboard.api("POST", `/v2/${id}/run`, { input: {} });
    const status = () => dashboard.api("GET", `/v2/${id}/status/${job.id}`);
    await expect.poll(async () => (await status()).status, { timeout: 20_000 }).toBe("IN_PROGRESS");
    const { workerId } = await status();
    const page = await dashboard.visit(`/endpoints/${id}/workers`);
    await press(page, "Stop");
    await press(page, "Stop now");
    await expect.poll(async () => (await status()).workerId, { timeout: 20_000 }).not.toBe(workerId);
  });
});

describe("Busy workers", () => {
  it("are replaced now, once the endpoint's name is typed, and their jobs start again", async () => {
    const id = await makeEndpoint(dashboard, dashboard.handler(slow), { name: "held" });
    const job = await dashboard.api("POST", `/v2/${id}/run`, { input: {} });
    const status = () => dashboard.api("GET", `/v2/${id}/status/${job.id}`);
    const page = await dashboard.visit(`/endpoints/${id}/workers`);
    await expect.poll(async () => (await status()).status, { timeout: 20_000 }).toBe("IN_PROGRESS");
    const { workerId } = await status();
    await press(page, "Replace all now");
    const dialog = page.getByRole("dialog");
    expect(await violations(page)).toEqual([]);
    await dialog.getByLabel("Type held to go on").fill("held");
    await dialog.getByRole("button", { name: "Replace all now" }).click();
    await dialog.waitFor({ state: "detached" });
    await expect.poll(async () => (await status()).workerId, { timeout: 20_000 }).not.toBe(workerId);
  });
});

describe("What waits and runs", () => {
  it("is in the chart as it was, and the table has each decision once", async () => {
    const endpoint = await makeEndpoint(dashboard, folder, { name: "charted", idleTimeout: 600 });
    for (let n = 0; n < 2; n++) await dashboard.api("POST", `/v2/${endpoint}/runsync`, { input: {} });
    const decisions = () => dashboard.api("GET", `/v1/endpoints/${endpoint}/scaling`);
    await expect.poll(async () => (await decisions())[0].inputs.running).toBe(0);
    const page = await dashboard.visit(`/endpoints/${endpoint}/scaling`);
    await sees(page, "a decision");
    const said = await page
      .getByRole("group", { name: /^Decisions/ })
      .getByRole("row")
      .allTextContents();
    expect(said.length).toBeLessThanOrEqual((await decisions()).length + 1);
  });
});

describe("What the catalog offers", () => {
  it("is chosen by a press, and taken away by another", async () => {
    const page = await dashboard.visit(`/endpoints/${idle}/settings`);
    const field = page.getByLabel("gpuTypeIds", { exact: true });
    const room = page.locator(".field").filter({ has: field });
    await room.getByRole("button", { name: "Choose from the catalog" }).click();
    const gpu = room.getByRole("button", { name: /^NVIDIA L4 24 GB/ });
    await gpu.click();
    await expect.poll(() => field.inputValue()).toBe("NVIDIA L4");
    expect(await gpu.getAttribute("aria-pressed")).toBe("true");
    expect(await violations(page)).toEqual([]);
    await gpu.click();
    await expect.poll(() => field.inputValue()).toBe("");
    await page.setViewportSize({ width: 360, height: 740 });
    await expect.poll(() => overflow(page)).toBe(0);
  });
});

describe("Deliveries", () => {
  it("are listed of one endpoint", async () => {
    const hooked = { input: {}, webhook: "http://127.0.0.1:9/of-one" };
    const ids = [];
    for (const name of ["first", "second"]) {
      const id = await makeEndpoint(dashboard, folder, { name });
      ids.push((await dashboard.api("POST", `/v2/${id}/runsync`, hooked)).id);
    }
    const page = await dashboard.visit("/webhooks");
    for (const id of ids) await sees(page, id);
    await page.getByLabel("Endpoint", { exact: true }).selectOption("of second");
    await page.getByText(ids[0]).waitFor({ state: "detached" });
    await sees(page, ids[1]);
    expect(page.url()).toContain("endpoint=");
    expect(await violations(page)).toEqual([]);
  });
});

describe("A bill", () => {
  it("is of chosen days, and by GPU type", async () => {
    const page = await dashboard.visit("/usage");
    const read = page.waitForRequest(/billing\/endpoints\?.*grouping=gpuTypeId/);
    await page.getByRole("button", { name: "by GPU type" }).click();
    await read;
    const days = page.waitForRequest(/billing\/endpoints\?.*endTime=2020-01-0[34]/);
    await page.getByLabel("From").fill("2020-01-01");
    await page.getByLabel("To").fill("2020-01-03");
    expect((await days).url()).toMatch(/startTime=20(19-12-31|20-01-01).*bucketSize=hour|bucketSize=hour/);
    await sees(page, "No workers ran in this time.");
    expect(await violations(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 740 });
    await expect.poll(() => overflow(page)).toBe(0);
  });
});

describe("On a phone", () => {
  it("the outcome of a what-if can be read whole", async () => {
    const endpoint = await makeEndpoint(dashboard, folder, { name: "replayed" });
    await dashboard.api("POST", `/v2/${endpoint}/runsync`, { input: {} });
    const page = await dashboard.visit(`/endpoints/${endpoint}/scaling`, { width: 360 });
    const box = await page.getByText(/^1 job\. Workers started/).boundingBox();
    expect((box?.x ?? 0) + (box?.width ?? 999)).toBeLessThanOrEqual(360);
  });
});
