import type { Page, Route } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import {
  endpointPages,
  everyPage,
  type Ids,
  mainPages,
  type PageCase,
  seed,
  useSeededDashboard,
} from "./every-page.js";
import { sees, useDashboard } from "./visit.js";

const failure = { error: "the database is away", code: "INTERNAL", requestId: "r" };

/** The replies to what a page reads: first held, then failures, then the server's own. */
function takeOver(reads: RegExp) {
  let state: "hold" | "fail" | "pass" = "hold";
  const held: Route[] = [];
  const fail = (route: Route) => route.fulfill({ status: 500, json: failure });
  return {
    async before(page: Page) {
      await page.clock.install();
      await page.route(/\/v1\/events$/, () => {}); // never answered: news would mend the page by itself
      await page.route(reads, async (route) => {
        if (state === "hold") held.push(route);
        else await (state === "fail" ? fail(route) : route.continue());
      });
    },
    async fail() {
      state = "fail";
      for (const route of held.splice(0)) await fail(route);
    },
    pass() {
      state = "pass";
    },
  };
}

const rail = (page: Page) => page.getByRole("navigation", { name: "Main" });

describe("A page whose reply is late, and then a failure", () => {
  const dashboard = useSeededDashboard();
  let ids: Ids;
  beforeAll(async () => {
    ids = await seed(dashboard);
  });

  it.each(everyPage)("$name shows where its content will be, then the error, then itself", async (shown) => {
    const { path, full, reads, isInstant } = shown;
    const replies = takeOver(reads);
    const page = await dashboard.visit(path(ids), { before: replies.before, provoked: /^500 / });
    if (!isInstant) await page.getByRole("status", { name: "Loading" }).first().waitFor({ timeout: 30_000 });
    await rail(page).waitFor();
    await page.evaluate(`document.querySelector("nav[aria-label=Main]").title = "the first"`);

    await replies.fail();
    const alert = page.getByRole("alert").filter({ hasText: failure.error });
    // it reads once more a second later
    const goesOn = () => page.clock.fastForward(1_000).then(() => alert.isVisible());
    await expect.poll(goesOn, { timeout: 30_000 }).toBe(true);
    replies.pass();
    await alert.getByRole("button", { name: "Try again" }).click({ timeout: 30_000 });
    await sees(page, full);
    expect(await alert.count()).toBe(0);
    expect(await rail(page).getAttribute("title"), "the rail was made anew").toBe("the first");
  });
});

describe("On a server that has nothing", () => {
  const dashboard = useDashboard();
  const hasEmpty = ({ empty }: PageCase) => empty !== undefined;
  const none: Ids = { endpoint: "", job: "", failed: "", worker: "", template: "", delivery: "" };

  it.each(mainPages.filter(hasEmpty))("$name says what it is for", async ({ path, empty }) => {
    await sees(await dashboard.visit(path(none)), empty as string);
  });

  it("Audit names no filter that nobody has set", async () => {
    const page = await dashboard.visit("/audit");
    const note = page.locator("main .note, main .empty").first();
    expect(await note.textContent()).not.toContain("matches");
  });

  describe("but an endpoint", () => {
    let endpoint: string;
    beforeAll(async () => {
      const imageName = dashboard.handler("export default () => 1;");
      const template = await dashboard.api("POST", "/v1/templates", { name: "t", imageName, isServerless: true });
      endpoint = (await dashboard.api("POST", "/v1/endpoints", { name: "first", templateId: template.id })).id;
    });

    it.each(endpointPages.filter(hasEmpty))("$name says what to do next", async ({ path, empty }) => {
      await sees(await dashboard.visit(path({ ...none, endpoint })), empty as string);
    });
  });
});
