import { beforeAll, describe, expect, it } from "vitest";
import { useDashboard } from "./visit.js";

const dashboard = useDashboard({ MILLRACE_RATE_LIMITS: "off" });
let endpoint: string;
let path: string;
beforeAll(async () => {
  const imageName = dashboard.handler("export default ({ fail }) => { if (fail) throw new Error(fail); };");
  const template = await dashboard.api("POST", "/v1/templates", { name: "t", imageName, isServerless: true });
  const fields = { name: "listed", templateId: template.id, idleTimeout: 600 };
  endpoint = (await dashboard.api("POST", "/v1/endpoints", fields)).id;
  path = `/endpoints/${endpoint}`;
  await dashboard.api("POST", `/v2/${endpoint}/runsync`, { input: {}, webhook: "http://127.0.0.1:9/hook" });
  await dashboard.api("POST", `/v2/${endpoint}/runsync`, { input: { fail: "on purpose" } });
});

describe("The list of requests", () => {
  it("shows a job that another client sends, without a reload", async () => {
    const page = await dashboard.visit(path);
    await page.getByText(/^\d+ shown/).waitFor();
    await page.evaluate("window.isTheSame = true");
    const { id } = await dashboard.api("POST", `/v2/${endpoint}/run`, { input: {} });
    await page.getByRole("row").filter({ hasText: id }).getByText("completed").waitFor();
    expect(await page.evaluate("window.isTheSame")).toBe(true);
  });

  it("keeps its filter in the address, after a reload and after going back", async () => {
    const page = await dashboard.visit(path);
    const filter = page.getByLabel("Filter requests");
    const rows = page.locator("tbody tr");
    const isFiltered = async () => {
      await page.getByText("on purpose").waitFor();
      expect(await filter.inputValue()).toBe("status:failed");
      await expect.poll(() => new URL(page.url()).searchParams.get("q")).toBe("status:failed");
      await expect.poll(() => rows.count()).toBe(1);
    };
    await page.getByText(/^\d+ shown/).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("status:failed");
    await isFiltered();
    await page.reload();
    await isFiltered();
    await rows.getByRole("link").click();
    await page.getByRole("heading", { name: "Error" }).waitFor();
    await page.goBack();
    await isFiltered();
    await page.getByRole("button", { name: "failed" }).click();
    await expect.poll(() => rows.count()).toBeGreaterThan(1);
  });
});

describe("On a phone", () => {
  it("a list shows the state beside the id of which only the end fits, and the tab of the page is in sight", async () => {
    const page = await dashboard.visit(`${path}/releases`, { width: 360 });
    const isInSight = async (selector: string) => {
      const box = await page.locator(selector).first().boundingBox();
      return box !== null && box.x >= 0 && box.x + box.width <= 360;
    };
    await page.getByRole("group", { name: "Releases" }).waitFor();
    await expect.poll(() => isInSight(".tabs .active")).toBe(true);
    await page.locator(".tabs a").first().click();
    await page.getByText(/^\d+ shown/).waitFor();
    await expect.poll(() => isInSight(".tabs .active")).toBe(true);
    expect(await isInSight("tbody .status")).toBe(true);
  });
});

describe("The keyboard", () => {
  it("goes to an endpoint by its name with Control+K", async () => {
    const page = await dashboard.visit("/usage");
    await page.getByRole("heading", { name: "Usage" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByLabel("Endpoint, page or job").waitFor();
    await page.keyboard.type("list");
    await page.getByRole("option", { name: "listed" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "listed" }).waitFor();
    expect(new URL(page.url()).pathname).toBe(path);
  });

  it("goes to a job by its id", async () => {
    const { requests } = await dashboard.api("GET", `/v2/${endpoint}/requests`);
    const page = await dashboard.visit("/");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByLabel("Endpoint, page or job").fill(requests[0].id);
    await page.getByRole("button", { name: "Look for a job with this id" }).click();
    await page.getByRole("heading", { name: requests[0].id }).waitFor();
  });

  it("shows its keys with ?, and closes them with Escape", async () => {
    const page = await dashboard.visit("/");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "detached" });
  });
});

describe("A long list", () => {
  let long: string;
  const jobs: string[] = [];
  beforeAll(async () => {
    const templateId = (await dashboard.api("GET", "/v1/templates"))[0].id;
    const { id } = await dashboard.api("POST", "/v1/endpoints", { name: "long", templateId, workersMax: 0 });
    long = `/endpoints/${id}`;
    for (let n = 0; n < 150; n++) jobs.push((await dashboard.api("POST", `/v2/${id}/run`, { input: {} })).id);
  });

  it("says in how many of its rows it looked for what was typed", async () => {
    const page = await dashboard.visit(`${long}?q=${jobs.at(-1)}`);
    await page.getByText("1 match in the 50 rows loaded").waitFor();
    await page.getByLabel("Filter requests").fill(jobs[0] as string);
    await page.getByText("No job matches in the 50 rows loaded.").waitFor();
    await page.getByRole("button", { name: "Older ones" }).click();
    await page.getByText("No job matches in the 100 rows loaded.").waitFor();
    await page.getByRole("button", { name: "Older ones" }).click();
    await page.getByText("1 match in the 150 rows loaded").waitFor();
    await page.getByLabel("Filter requests").fill("status:waiting");
    await page.getByText("50 shown").waitFor();
  });

  it("holds few of its rows, and shows the last one when it is scrolled to", async () => {
    const page = await dashboard.visit(long);
    await page.getByText("50 shown").waitFor();
    const room = page.getByRole("group", { name: "Requests" });
    const oldest = room.getByRole("link", { name: jobs[0] as string });
    const scrollDown = `scrollTo(0, 1e6);
      for (const room of document.querySelectorAll(".table-room")) room.scrollTop = 1e6;`;
    const scrolled = async () => {
      await page.evaluate(scrollDown);
      return oldest.count();
    };
    await page.getByRole("button", { name: "Older ones" }).click();
    await page.getByText("100 shown").waitFor();
    await expect.poll(scrolled, { timeout: 15_000 }).toBe(1);
    await page.getByText("150 shown").waitFor();
    expect(await oldest.isVisible()).toBe(true);
    expect(await page.getByRole("row").count()).toBeLessThan(100);
  });
});
