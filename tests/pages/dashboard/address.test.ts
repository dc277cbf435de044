import type { Locator, Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { useDashboard } from "./visit.js";

const dashboard = useDashboard({ MILLRACE_RATE_LIMITS: "off" });
let path: string;
beforeAll(async () => {
  const imageName = dashboard.handler("export default ({ fail }) => { if (fail) throw new Error(fail); };");
  const template = await dashboard.api("POST", "/v1/templates", { name: "beta", imageName, isServerless: true });
  await dashboard.api("POST", "/v1/templates", { name: "alpha", imageName, isServerless: true });
  const fields = { name: "addressed", templateId: template.id, idleTimeout: 600, workersMax: 3 };
  const endpoint = (await dashboard.api("POST", "/v1/endpoints", fields)).id;
  path = `/endpoints/${endpoint}`;
  await dashboard.api("POST", `/v2/${endpoint}/runsync`, { input: { fail: "on purpose" } });
  await dashboard.api("POST", `/v2/${endpoint}/runsync`, { input: {}, webhook: "http://127.0.0.1:9/hook" });
  await dashboard.api("POST", `/v2/${endpoint}/runsync`, { input: { fail: "on purpose" } });
});

const inAddress = (page: Page) => Object.fromEntries(new URL(page.url()).searchParams);
const press = (page: Page, name: string) => page.getByRole("button", { name }).click();
/** What a column's cells say, from the first row to the last. */
const column = (page: Page, n: number) => page.locator(`tbody tr > :nth-child(${n})`).allTextContents();
/** The head of a column that a list is sorted by. */
const sorted = (of: Page | Locator, title: string, order: string) =>
  of.locator(`th[aria-sort=${order}]`, { hasText: title });

describe("The address has", () => {
  it("the order of a list, beside its filter, after a reload and after going back", async () => {
    const page = await dashboard.visit(path);
    const isSorted = async () => {
      await sorted(page, "State", "ascending").waitFor();
      expect(await column(page, 2)).toEqual(["completed", "failed", "failed"]);
      expect(inAddress(page)).toEqual({ sort: "State" });
    };
    await expect.poll(() => column(page, 2)).toEqual(["failed", "completed", "failed"]);
    await press(page, "State");
    await isSorted();
    await page.reload();
    await isSorted();
    await page.locator("tbody").getByRole("link").first().click();
    await page.getByRole("heading", { name: "Output" }).waitFor();
    await page.goBack();
    await isSorted();

    await press(page, "State");
    await sorted(page, "State", "descending").waitFor();
    await page.locator(".filters").getByRole("button", { name: "failed" }).click();
    await expect.poll(() => inAddress(page)).toEqual({ sort: "-State", q: "status:failed" });
    await sorted(page, "State", "descending").waitFor();
  });

  it("the order of a list on which something is opened and closed", async () => {
    const page = await dashboard.visit("/templates?sort=Name");
    await expect.poll(() => column(page, 1)).toEqual(["alpha", "beta"]);
    await page.getByRole("link", { name: "alpha" }).click();
    await press(page, "Close");
    await expect.poll(() => inAddress(page)).toEqual({ sort: "Name" });
    await page.goto(`${dashboard.server.url}/templates?sort=-Name`);
    await expect.poll(() => column(page, 1)).toEqual(["beta", "alpha"]);
  });

  it("no order by a column that cannot be sorted by", async () => {
    const page = await dashboard.visit("/templates?sort=Id");
    await page.getByRole("row", { name: "alpha" }).waitFor();
    expect(await page.locator("th[aria-sort]").count()).toBe(0);
  });

  it("the order of each list of a page, beside its filter", async () => {
    const page = await dashboard.visit("/webhooks");
    const order = { receiverSort: "Held", sort: "State" };
    const [receivers, deliveries] = ["Receivers", "Deliveries"].map((name) => page.getByRole("group", { name }));
    await receivers?.getByRole("button", { name: "Held" }).click();
    await deliveries?.getByRole("button", { name: "State" }).click();
    await deliveries?.getByRole("link").first().click();
    await expect.poll(() => inAddress(page)).toEqual({ ...order, open: expect.any(String) });
    await page.reload();
    await sorted(receivers as Locator, "Held", "ascending").waitFor();
    await sorted(deliveries as Locator, "State", "ascending").waitFor();
    expect(await page.locator("th[aria-sort]").count()).toBe(2);
    await press(page, "pending");
    await expect.poll(() => inAddress(page)).toEqual({ ...order, state: "pending" });
  });

  it("the sliders of a what-if, and a colleague sees the same", async () => {
    const page = await dashboard.visit(`${path}/scaling`);
    const slider = (of: Page, name: string) => of.getByLabel(new RegExp(`^${name} `));
    await slider(page, "workersMax").fill("9");
    await slider(page, "scalerValue").fill("2");
    await expect.poll(() => inAddress(page)).toEqual({ workersMax: "9", scalerValue: "2" });
    const address = page.url().slice(dashboard.server.url.length);

    const asked: string[] = [];
    const other = await dashboard.visit(address, {
      before: async (opened) => {
        opened.on("request", (request) => asked.push(request.url()));
      },
    });
    await other.getByText("3 jobs.").waitFor();
    expect(await slider(other, "workersMax").inputValue()).toBe("9");
    expect(await slider(other, "scalerValue").inputValue()).toBe("2");
    expect(await slider(other, "workersMin").inputValue()).toBe("0");
    expect(asked.filter((url) => url.includes("/replay?")).map((url) => new URL(url).search)).toEqual([
      "?workersMax=9&scalerValue=2",
    ]);

    // the present setting needs no place in the address
    await slider(other, "workersMax").fill("3");
    await expect.poll(() => inAddress(other)).toEqual({ scalerValue: "2" });
    await press(other, "When");
    await expect.poll(() => inAddress(other)).toEqual({ scalerValue: "2", sort: "When" });
    await slider(other, "scalerValue").fill("5");
    await expect.poll(() => inAddress(other)).toEqual({ scalerValue: "5", sort: "When" });
  });
});

describe("An address that is no page's", () => {
  it("leads on for a person, and is answered as JSON for a program and below the API's paths", async () => {
    const page = await dashboard.visit("/endpionts/a", { provoked: /^404 GET .*\/endpionts\/a$/ });
    await page.getByRole("heading", { name: "There is no such page" }).waitFor();
    await page.getByRole("link", { name: "All endpoints" }).click();
    await page.getByRole("link", { name: "addressed" }).first().waitFor();
    const reply = async (address: string, accept: string) => {
      const { status, headers } = await fetch(dashboard.server.url + address, { headers: { accept } });
      return [status, headers.get("content-type")?.split(";")[0]];
    };
    expect(await reply("/endpionts/a", "text/html,*/*")).toEqual([404, "text/html"]);
    expect(await reply("/endpionts/a", "*/*")).toEqual([404, "application/json"]);
    expect(await reply("/v2/a/b/c/d", "text/html,*/*")).toEqual([404, "application/json"]);
  });
});
