import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer } from "../harness.js";
import { useBrowser } from "./browser.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.end());
const { visit } = useBrowser();

const restV1 = { name: "REST v1", path: "/v1/openapi.json" };
const documents = [{ name: "Queue and REST v2", path: "/v2/openapi.json" }, restV1];

/** Opens one operation and sends its request; the status and body of the reply that the page shows. */
async function tryIt(page: Page, operationId: string): Promise<{ status: string | null; body: string | null }> {
  const operation = page.locator(`[id$="-${operationId}"]`);
  if (!(await operation.getAttribute("class"))?.includes("is-open")) await operation.locator("button").first().click();
  await operation.getByRole("button", { name: "Execute" }).click();
  const reply = operation.locator(".live-responses-table .response").first();
  await reply.waitFor();
  return {
    status: (await reply.locator(".response-col_status").textContent())?.trim() ?? null,
    body: await reply.locator(".highlight-code").first().textContent(),
  };
}

async function choose(page: Page, { name, path }: { name: string; path: string }): Promise<void> {
  await page.locator("#select").selectOption({ label: name });
  await page.locator(".info a", { hasText: path }).waitFor();
  await page.locator("h3.opblock-tag").first().waitFor();
}

/** Unfolds a tag's operations; the page folds them again if it reads its document once more. */
async function show(page: Page, tag: string): Promise<void> {
  const heading = page.locator(`h3[data-tag="${tag}"]`);
  const unfold = async () => {
    const isOpen = (await heading.getAttribute("data-is-open")) === "true";
    if (!isOpen) await heading.click();
    return isOpen;
  };
  await expect.poll(unfold, { interval: 300 }).toBe(true);
}

describe("The page at /docs", () => {
  it.each(documents)("shows every operation of $name", async ({ name, path }) => {
    const document = (await call(server, "GET", path)).body as { paths: Record<string, object> };
    const operations = Object.values(document.paths).flatMap((methods) => Object.keys(methods));
    const { page, complaints, origins } = await visit(`${server.url}/docs`);
    await choose(page, { name, path });
    for (const tag of await page.locator("h3.opblock-tag").all()) await tag.click();
    await expect.poll(() => page.locator(".opblock").count()).toBe(operations.length);
    expect(complaints).toEqual([]);
    expect([...origins]).toEqual([server.url]);
    await page.close();
  });

  it("sends a request with the caller's key, which it forgets when it is closed", async () => {
    const { page, origins } = await visit(`${server.url}/docs`);
    await choose(page, restV1);
    await show(page, "endpoints");
    expect(await tryIt(page, "ListEndpoints")).toMatchObject({ status: expect.stringMatching(/^401/) });

    await page.getByRole("button", { name: "Authorize" }).first().click();
    await page.locator(".auth-container input").fill(server.key);
    await page
      .locator(".auth-btn-wrapper")
      .getByRole("button", { name: /Authorize|Apply/ })
      .click();
    await page.locator(".auth-btn-wrapper").getByRole("button", { name: "Close" }).click();
    await expect.poll(async () => (await tryIt(page, "ListEndpoints")).status).toMatch(/^200/);

    const kept = await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])");
    expect(kept).not.toContain(server.key);
    await page.reload();
    await choose(page, restV1);
    await show(page, "endpoints");
    expect(await tryIt(page, "ListEndpoints")).toMatchObject({ status: expect.stringMatching(/^401/) });
    expect([...origins]).toEqual([server.url]);
    await page.close();
  });

  it("may load nothing from elsewhere, nor be shown inside another page", async () => {
    const { headers } = await fetch(`${server.url}/docs`);
    expect(headers.get("content-security-policy")).toMatch(
      /default-src 'none'.*connect-src 'self'.*frame-ancestors 'none'/,
    );
  });
});
