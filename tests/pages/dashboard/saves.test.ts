import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { overflow, violations } from "../looks.js";
import { useDashboard } from "./visit.js";

const dashboard = useDashboard({ MILLRACE_RATE_LIMITS: "off" });
let folder: string;
let template: string;
let endpoint: string;
beforeAll(async () => {
  folder = dashboard.handler("export default () => 1;");
  const of = { name: "template", imageName: folder, isServerless: true };
  template = (await dashboard.api("POST", "/v1/templates", of)).id;
  const fields = { name: "saved", templateId: template, workersMax: 0 };
  endpoint = (await dashboard.api("POST", "/v1/endpoints", fields)).id;
});

const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
const says = (page: Page, text: string) => page.getByRole("status").getByText(text, { exact: true }).waitFor();
const isSilent = (page: Page) => page.getByRole("status").getByText("Saved.").waitFor({ state: "detached" });

/** Adds fields to what a page sends, as a form would that knows more fields than its server. */
const sendMore = (page: Page, more: object) =>
  page.route(/\/v1\/(endpoints|templates)/, (route, request) =>
    request.method() === "GET"
      ? route.continue()
      : route.continue({ postData: JSON.stringify({ ...request.postDataJSON(), ...more }) }),
  );

describe("A save", () => {
  it("names the fields without effect until it is dismissed, and a later one reports anew", async () => {
    const page = await dashboard.visit(`/endpoints/${endpoint}/settings`);
    await sendMore(page, { colour: "blue", shape: 1 });
    await page.getByLabel(/^idleTimeout/).fill("7");
    await press(page, "Save");
    await says(page, "Saved. Without effect here: colour, shape");
    expect((await dashboard.api("GET", `/v1/endpoints/${endpoint}`)).idleTimeout).toBe(7);
    expect(await violations(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 740 });
    await expect.poll(() => overflow(page)).toBe(0);
    await press(page, "Dismiss");
    await isSilent(page);

    await page.unroute(/\/v1\/(endpoints|templates)/);
    await page.getByLabel(/^idleTimeout/).fill("8");
    await press(page, "Save");
    await says(page, "Saved.");
    await page.getByRole("link", { name: "Releases", exact: true }).click();
    await isSilent(page);
  });

  it("in a dialog reports once it has closed", async () => {
    const page = await dashboard.visit(`/templates?open=${template}`);
    await sendMore(page, { colour: "blue" });
    await page.getByRole("dialog").getByLabel(/^name/).fill("renamed");
    await press(page, "Save");
    await says(page, "Saved. Without effect here: colour");
    await page.getByRole("row").filter({ hasText: "renamed" }).waitFor();
  });

  it("of something new reports on the page that it leads to", async () => {
    const page = await dashboard.visit("/endpoints/new");
    await sendMore(page, { colour: "blue" });
    await page.getByLabel(/^name/).first().fill("new");
    await page.getByLabel("image or folder").fill(folder);
    await press(page, "Create");
    await page.getByLabel("Input, a JSON object").waitFor();
    await says(page, "Saved. Without effect here: colour");
  });
});
