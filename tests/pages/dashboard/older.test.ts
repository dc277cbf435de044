import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { until } from "../../harness.js";
import { sees, useDashboard } from "./visit.js";

const dashboard = useDashboard({ MILLRACE_RATE_LIMITS: "off" });
const hook = "http://127.0.0.1:9/hook";
let endpoint: string;
let template: string;
beforeAll(async () => {
  const imageName = dashboard.handler(
    'export default ({ lines = 0 }) => { for (let n = 0; n < lines; n++) console.log("line", n); };',
  );
  template = (await dashboard.api("POST", "/v1/templates", { name: "t", imageName, isServerless: true })).id;
  const fields = { name: "listed", templateId: template, idleTimeout: 600 };
  endpoint = (await dashboard.api("POST", "/v1/endpoints", fields)).id;
});

const rowsOf = (page: Page, label: string) => page.getByRole("group", { name: label }).getByRole("row");
/** A row of a list that the server would return after 250 newer ones. */
const numbered = (n: number) => String(n).padStart(3, "0");

/** Replies to a list of 250 rows in pages of 100, of which the next is asked for by the last row of the one before. */
async function listLong(page: Page, path: string, row: (n: number) => object, cursor: [name: string, of: string]) {
  await page.route(new RegExp(`/v1/webhooks/${path}\\?`), (route) => {
    const from = new URL(route.request().url()).searchParams.get(cursor[0]);
    const first = from === null ? 0 : Number(/(\d+)$/.exec(from)?.[1]) + 1;
    const json = Array.from({ length: Math.min(100, 250 - first) }, (_, n) => row(first + n));
    return route.fulfill({ json });
  });
}

describe("A list of deliveries", () => {
  const delivery = (n: number) => ({ id: `d${numbered(n)}`, jobId: "j", url: hook, state: "failed", attempts: [] });

  it("is read on to its end, and says that it is not refreshed meanwhile", async () => {
    const page = await dashboard.visit("/webhooks", {
      before: (opened) => listLong(opened, "deliveries", delivery, ["before", "id"]),
    });
    const older = page.locator("section", { hasText: "Deliveries" }).getByRole("button", { name: "Older ones" });
    await page.getByText("100 shown").waitFor();
    expect(await page.getByText("not refreshed").count()).toBe(0);
    await older.click();
    await page.getByText("200 shown").waitFor();
    await page.getByText("The list is not refreshed while older ones are shown.").waitFor();
    await older.click();
    await page.getByText("250 shown").waitFor();
    await older.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Back to the newest" }).click();
    await page.getByText("100 shown").waitFor();
  });

  it("of receivers has a button for more", async () => {
    const receiver = (n: number) => ({
      id: `r${n}`,
      origin: `https://receiver-${numbered(n)}`,
      state: "healthy",
      lastAttemptAt: "2030-01-01T00:00:00.000Z",
      failures: 0,
      held: 0,
    });
    const page = await dashboard.visit("/webhooks", {
      before: (opened) => listLong(opened, "receivers", receiver, ["after", "origin"]),
    });
    await page.getByRole("button", { name: "More receivers" }).click();
    await page.getByText("200 shown").waitFor();
    await page.getByRole("button", { name: "More receivers" }).click();
    await page.getByText("250 shown").waitFor();
    expect(await page.getByRole("button", { name: "More receivers" }).count()).toBe(0);
  });

  it("shows a delivery that its address names, wherever it is, with what was answered", async () => {
    await dashboard.api("POST", `/v2/${endpoint}/runsync`, {
      input: {},
      webhook: `${dashboard.server.url}/v1/nothing`,
    });
    const { id } = await until(async () => {
      const [first] = await dashboard.api("GET", "/v1/webhooks/deliveries");
      return first?.attempts.length > 0 && first;
    });
    const page = await dashboard.visit(`/webhooks?open=${id}&state=delivered`);
    await sees(page, "None. A delivery is kept for a day");
    await page.getByRole("button", { name: "Send again" }).waitFor();
    await page.locator(".attempts pre").first().waitFor();
  });

  it("follows what happens to it and to its receiver, without a reload", async () => {
    const page = await dashboard.visit("/webhooks");
    const { length } = await dashboard.api("GET", "/v1/webhooks/deliveries");
    await expect.poll(() => rowsOf(page, "Deliveries").count()).toBe(length + 1);
    await dashboard.api("POST", `/v2/${endpoint}/runsync`, { input: {}, webhook: hook });
    await expect.poll(() => rowsOf(page, "Deliveries").count(), { timeout: 10_000 }).toBe(length + 2);
    const receiver = rowsOf(page, "Receivers").filter({ hasText: "http://127.0.0.1:9" });
    await receiver.getByText("healthy").waitFor({ timeout: 10_000 });
    const receivers: { id: string; origin: string }[] = await dashboard.api("GET", "/v1/webhooks/receivers");
    const id = receivers.find(({ origin }) => hook.startsWith(origin))?.id;
    await dashboard.api("POST", `/v1/webhooks/receivers/${id}/pause`);
    await receiver.getByText("paused").waitFor({ timeout: 5_000 });
    await dashboard.api("POST", `/v1/webhooks/receivers/${id}/resume`);
    await receiver.getByText("paused").waitFor({ state: "detached", timeout: 5_000 });
  });
});

describe("The audit log", () => {
  it("shows an entry that its address names, though it is not among the newest", async () => {
    const audit = "/v1/audit?action=template.create";
    const [{ at, resource, action }] = (await dashboard.api("GET", audit)).entries;
    expect(resource).toBe(template);
    const open = encodeURIComponent(`${at} ${resource} ${action}`);
    const page = await dashboard.visit(`/audit?action=endpoint.create&open=${open}`);
    await page.getByRole("heading", { name: `template.create ${template}` }).waitFor();
  });

  it.each(["nothing", "2020-01-01T00:00:00.000Z nobody template.create"])(
    "says that it has no entry %s",
    async (key) => {
      const page = await dashboard.visit(`/audit?open=${encodeURIComponent(key)}`);
      await sees(page, "The change that this address names is not in the log, or no longer.");
    },
  );
});

describe("A log", () => {
  it("shows its last lines, and older ones when they are asked for", async () => {
    await dashboard.api("POST", `/v2/${endpoint}/runsync`, { input: { lines: 700 } });
    const page = await dashboard.visit(`/endpoints/${endpoint}/logs`);
    await sees(page, "The last 500 lines are shown.");
    await page.getByText("line 699", { exact: true }).waitFor();
    expect(await page.getByText("line 0", { exact: true }).count()).toBe(0);
    await page.getByRole("button", { name: "Older lines" }).click();
    await page.getByText("line 0", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "Older lines" }).count()).toBe(0);
  });
});
