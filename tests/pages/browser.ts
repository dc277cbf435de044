import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll } from "vitest";

export interface Visit {
  readonly page: Page;
  /** What the browser complained of: errors of scripts, what a policy refused, requests that failed. */
  readonly complaints: readonly string[];
  /** The origins that the page asked for anything. */
  readonly origins: ReadonlySet<string>;
}

/** A browser for a file's tests. */
export function useBrowser(): { readonly visit: (url: string) => Promise<Visit> } {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: "/usr/bin/chromium" });
  });
  afterAll(() => browser.close());

  return {
    async visit(url) {
      const page = await browser.newPage({ viewport: { width: 1_280, height: 900 } });
      const complaints: string[] = [];
      const origins = new Set<string>();
      page.on("console", (line) => {
        if (["error", "warning"].includes(line.type())) complaints.push(line.text());
      });
      page.on("pageerror", (error) => complaints.push(String(error)));
      page.on("requestfailed", (request) => complaints.push(`failed: ${request.url()}`));
      page.on("request", (request) => {
        if (!request.url().startsWith("data:")) origins.add(new URL(request.url()).origin);
      });
      await page.goto(url);
      return { page, complaints, origins };
    },
  };
}
