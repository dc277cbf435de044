import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { overflow, violations } from "../looks.js";
import { sees, signIn, useDashboard } from "./visit.js";

const dashboard = useDashboard({ MILLRACE_RATE_LIMITS: "off", MILLRACE_STOP_GRACE: "1" });
let folder: string;
let idle: string;
beforeAll(async () => {
  folder = dashboard.handler("export default () => process.env.TOKEN ?? 1;");
  idle = await makeEndpoint({ name: "without-workers", workersMax: 0 });
});

async function makeEndpoint(fields: Record<string, unknown>): Promise<string> {
  const of = { name: `template of ${fields.name}`, imageName: folder, isServerless: true };
  const template = await dashboard.api("POST", "/v1/templates", of);
  return (await dashboard.api("POST", "/v1/endpoints", { ...fields, templateId: template.id })).id;
}

const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();

describe("A secret", () => {
  it("gets another value and another description, and the page shows no value", async () => {
    const { id } = await dashboard.api("POST", "/v1/secrets", { name: "TOKEN", value: "old-value" });
    const page = await dashboard.visit("/secrets");
    await page.getByRole("link", { name: "TOKEN", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("value").fill("new-value");
    await dialog.getByLabel("description").fill("of a test");
    await dialog.getByText("a new value").waitFor();
    expect(await dialog.textContent()).not.toContain("new-value");
    expect(await violations(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 740 });
    await expect.poll(() => overflow(page)).toBe(0);
    await press(page, "Save");
    await page.getByRole("status").getByText("Saved.").waitFor();
    expect(await dashboard.api("GET", `/v1/secrets/${id}`)).toMatchObject({ description: "of a test" });

    const endpoint = await makeEndpoint({ name: "tells", env: { TOKEN: "x{{ RUNPOD_SECRET_TOKEN }}" } });
    const { output } = await dashboard.api("POST", `/v2/${endpoint}/runsync`, { input: {} });
    expect(output).toBe("xnew-value");
  });

  it("loses its description when the field is emptied", async () => {
    const made = { name: "DESCRIBED", value: "12345678", description: "of a test" };
    const { id } = await dashboard.api("POST", "/v1/secrets", made);
    const page = await dashboard.visit(`/secrets?open=${id}`);
    await page.getByRole("dialog").getByLabel("description").fill("");
    await press(page, "Save");
    await page.getByRole("status").getByText("Saved.").waitFor();
    expect((await dashboard.api("GET", `/v1/secrets/${id}`)).description).toBe("");
  });
});

describe("A job that is tried", () => {
  it("has the webhook and the policy that were filled in, and so has the code to paste", async () => {
    const page = await dashboard.visit(`/endpoints/${idle}/try`);
    await page.getByText("Webhook and policy").click();
    await page.getByLabel("webhook").fill("http://127.0.0.1:9/tried");
    await page.getByLabel("executionTimeout").fill("60000");
    await page.getByLabel("lowPriority").check();
    expect(await violations(page)).toEqual([]);
    const snippet = page.getByRole("region", { name: "The same from your code" }).locator("code");
    for (const name of ["curl", "Python", "TypeScript"]) {
      await press(page, name);
      expect(await snippet.textContent()).toMatch(/http:\/\/127\.0\.0\.1:9\/tried.*60000/);
    }
    await press(page, "command line");
    expect(await snippet.textContent()).toContain("--webhook 'http://127.0.0.1:9/tried'");
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

describe("Waiting jobs", () => {
  it("are all cancelled once the endpoint's name is typed", async () => {
    const endpoint = await makeEndpoint({ name: "purged", workersMax: 0 });
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

describe("An admin", () => {
  it("sees another user's keys, and revokes one", async () => {
    const user = await dashboard.api("POST", "/v1/users", { name: "Team two", role: "member" });
    const { key } = await dashboard.api("POST", "/v1/apikeys", { name: "of-team-two", userId: user.id });
    const page = await dashboard.visit("/keys");
    await page.getByLabel("Keys of").selectOption("Team two");
    await page.getByRole("row").filter({ hasText: "of-team-two" }).getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByLabel("Type of-team-two to go on").fill("of-team-two");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await sees(page, "No keys.");
    const other = await dashboard.visit("/", { key: null, provoked: /^401 GET/ });
    await signIn(other, key);
    await other.getByRole("alert").getByText("This server does not know that key.").waitFor();
  });

  it("takes a quota away by emptying its field, and the others stay", async () => {
    const quotas = { workers: 10, gpus: 4 };
    const { id } = await dashboard.api("POST", "/v1/users", { name: "Team three", role: "member", quotas });
    const page = await dashboard.visit(`/users?open=${id}`);
    await page.getByRole("dialog").getByLabel("workers").fill("");
    const changes = page.getByRole("dialog").locator(".changes");
    await changes.getByText("quotas.workers").waitFor();
    expect(await changes.textContent()).not.toContain("gpus");
    await press(page, "Save");
    await page.getByRole("status").getByText("Saved.").waitFor();
    expect((await dashboard.api("GET", `/v1/users/${id}`)).quotas).toEqual({ gpus: 4 });
  });

  it("ends a key at once, and the page goes on with the new one", async () => {
    const { key } = await dashboard.api("POST", "/v1/apikeys", { name: "leaked", scope: "all" });
    const page = await dashboard.visit("/keys", { key: null, provoked: /^401 GET/ });
    await signIn(page, key);
    await page.getByRole("row").filter({ hasText: "leaked" }).getByRole("button", { name: "Rotate" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("The old key").selectOption("ends at once");
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Rotate" }).click();
    const fresh = (await page.locator("code.once").textContent()) ?? "";
    await press(page, "I have kept it");
    await page.getByRole("link", { name: "Users", exact: true }).click();
    await sees(page, "admin");
    const says = async (of: string) =>
      (await fetch(`${dashboard.server.url}/v1/secrets`, { headers: { authorization: `Bearer ${of}` } })).status;
    expect([await says(key), await says(fresh)]).toEqual([401, 200]);
  });
});

describe("A worker that does not end its job", () => {
  it("is stopped now, and the job starts again on another", async () => {
    const slow = dashboard.handler("export default () => new Promise((done) => setTimeout(done, 600_000));");
    const of = { name: "slow", imageName: slow, isServerless: true };
    const template = await dashboard.api("POST", "/v1/templates", of);
    const fields = { name: "stuck", templateId: template.id, workersMax: 2 };
    const { id } = await dashboard.api("POST", "/v1/endpoints", fields);
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

describe("On a phone", () => {
  it("the outcome of a what-if can be read whole", async () => {
    const endpoint = await makeEndpoint({ name: "replayed" });
    await dashboard.api("POST", `/v2/${endpoint}/runsync`, { input: {} });
    const page = await dashboard.visit(`/endpoints/${endpoint}/scaling`, { width: 360 });
    const box = await page.getByText(/^1 job\. Workers started/).boundingBox();
    expect((box?.x ?? 0) + (box?.width ?? 999)).toBeLessThanOrEqual(360);
  });
});
