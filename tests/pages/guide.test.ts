import { describe, expect, it } from "vitest";
import { guidePages } from "../docs/guide/blocks.js";
import { sees, useDashboard } from "./dashboard/visit.js";
import { overflow, violations } from "./looks.js";

const dashboard = useDashboard();
const open = (path: string, look: { width?: number } = {}) =>
  dashboard.visit(`/docs/guide/${path}`, { key: null, ...look });
const pathOf = (page: string) => (page === "index" ? "" : `${page.replace("../", "")}/`);

describe.each(guidePages)("The guide's page %s", (page) => {
  it("reads well in light on a desk and in dark on a phone, and loads nothing from elsewhere", async () => {
    const tab = await open(pathOf(page));
    await tab.locator("article h1").waitFor();
    for (const [width, colorScheme] of [
      [1_280, "light"],
      [360, "dark"],
    ] as const) {
      await tab.setViewportSize({ width, height: 800 });
      await tab.emulateMedia({ colorScheme });
      expect(await violations(tab), `${width} px, ${colorScheme}`).toEqual([]);
      expect(await overflow(tab), "nothing is cut off at the side").toBe(0);
      expect(await tab.locator(".contents [aria-current]").count()).toBe(1);
    }
  });
});

describe("The guide", () => {
  it("finds words by keyboard, and goes to the part of the page that has them", async () => {
    const tab = await open("");
    await tab.keyboard.press("/");
    await tab.keyboard.type("idempot");
    await tab.locator("#found a").first().waitFor();
    await tab.keyboard.press("ArrowDown");
    await tab.keyboard.press("ArrowUp");
    await tab.keyboard.press("Enter");
    await tab.waitForURL(/docs\/guide\/jobs\/#submit-once/);
    await sees(tab, "Submit once, even if you ask twice");
  });

  it("says so if nothing matches, and closes the results with Escape", async () => {
    const tab = await open("jobs/");
    await tab.fill("#search", "zzzzzzzz");
    await sees(tab, "Nothing on these pages matches.");
    await tab.keyboard.press("Escape");
    await tab.locator("#found").waitFor({ state: "hidden" });
  });

  it("leads through its pages, from the dashboard too", async () => {
    const tab = await dashboard.visit("/");
    await tab.getByRole("link", { name: "Guide" }).click();
    await tab.getByRole("heading", { name: "Quick start" }).waitFor();
    await tab.getByRole("link", { name: "Handlers →" }).click();
    await tab.getByRole("heading", { name: "Handlers", exact: true }).waitFor();
    await tab.getByRole("navigation", { name: "On this page" }).getByRole("link", { name: "Streaming" }).click();
    await tab.waitForURL(/#streaming$/);
  });

  it("folds its contents away on a phone", async () => {
    const tab = await open("jobs/", { width: 360 });
    const contents = tab.getByRole("navigation", { name: "Contents" });
    await contents.waitFor({ state: "hidden" });
    await tab.getByText("Contents", { exact: true }).click();
    await contents.getByRole("link", { name: "Webhooks" }).click();
    await tab.getByRole("heading", { name: "Webhooks", exact: true }).waitFor();
  });

  it("refuses pages that do not exist", async () => {
    const reply = await fetch(`${dashboard.server.url}/docs/guide/no-such-page/`);
    expect(reply.status).toBe(404);
    expect(await reply.json()).toMatchObject({ code: expect.any(String) });
  });
});
