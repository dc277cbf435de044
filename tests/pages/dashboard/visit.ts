import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page, type Request } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { call, type ShorterLimits, startServer, type TestServer } from "../../harness.js";

/** How a page is looked at. */
interface Look {
  /** The key of the session; null for a visitor who has not signed in. By default the server's first key. */
  readonly key?: string | null;
  readonly width?: number;
  /** Errors that the test causes on purpose, as in "401 GET http://…/v1/endpoints". */
  readonly provoked?: RegExp;
  /** Runs before the page is opened, for instance to hold replies. */
  readonly before?: (page: Page) => Promise<void>;
}

/** A browser and a server for a file's tests. */
export interface Dashboard {
  readonly server: TestServer;
  /** Opens a page. When the test ends, the page must have had no complaint and no request to another origin. */
  visit(path: string, look?: Look): Promise<Page>;
  /** Calls the server's API with its first key, and returns the body of the reply. */
  // biome-ignore lint/suspicious/noExplicitAny: tests check its shape
  api(method: string, path: string, body?: unknown): Promise<any>;
  /** Makes a folder with this source as its `handler.mjs`; it is removed after the last test. */
  handler(source: string): string;
}

/** Starts a browser and a server for a file's tests, and judges every page that they open. */
export function useDashboard(env: Record<string, string> = {}, shorter?: ShorterLimits): Dashboard {
  let browser: Browser;
  let context: BrowserContext; // shared, as its cache spares each page the scripts
  let server: TestServer;
  const folders: string[] = [];
  const open: { readonly page: Page; readonly complaints: string[]; readonly origins: Set<string> }[] = [];

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: "/usr/bin/chromium" });
    context = await browser.newContext();
    server = await startServer(env, shorter);
  });
  afterEach(async () => {
    for (const { page, complaints, origins } of open.splice(0)) {
      const said = [...complaints];
      await page.close();
      expect(said).toEqual([]);
      expect([...origins]).toEqual([server.url]);
    }
  });
  afterAll(async () => {
    await browser?.close();
    await server?.end();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  });

  return {
    get server() {
      return server;
    },
    async visit(path, { key = server.key, width = 1_280, provoked, before } = {}) {
      const page = await context.newPage();
      await page.setViewportSize({ width, height: 800 });
      if (key !== null) await page.addInitScript(keepKey(key));
      const complaints: string[] = [];
      const origins = new Set<string>();
      listen(page, origins, (words) => provoked?.test(words) || complaints.push(words));
      open.push({ page, complaints, origins });
      await before?.(page);
      await page.goto(server.url + path);
      return page;
    },
    async api(method, path, body) {
      const reply = await call(server, method, path, body);
      expect(reply.status, `${method} ${path}: ${JSON.stringify(reply.body)}`).toBeLessThan(300);
      return reply.body;
    },
    handler(source) {
      const folder = mkdtempSync(join(tmpdir(), "millrace-pages-"));
      folders.push(folder);
      writeFileSync(join(folder, "handler.mjs"), source);
      return folder;
    },
  };
}

/** A script that signs in; an empty page has no storage. */
const keepKey = (key: string) =>
  `if (location.origin !== "null") sessionStorage.setItem("millrace.key", ${JSON.stringify(key)});`;

function listen(page: Page, origins: Set<string>, complain: (words: string) => void): void {
  const named = (request: Request) => `${request.method()} ${request.url()}`;
  page.on("console", (line) => {
    // the browser's line about a reply with an error names no status: the reply itself is judged below
    if (["debug", "verbose"].includes(line.type()) || line.text().startsWith("Failed to load resource")) return;
    complain(`${line.type()}: ${line.text()}`);
  });
  page.on("pageerror", (error) => complain(`uncaught: ${error}`));
  page.on("requestfailed", (request) => {
    // a page that is left aborts its streams, and whatever else it is still reading
    const isLeft = request.method() === "GET" && request.failure()?.errorText === "net::ERR_ABORTED";
    if (!isLeft) complain(`failed: ${named(request)}`);
  });
  page.on("response", (reply) => {
    if (reply.status() >= 400) complain(`${reply.status()} ${named(reply.request())}`);
  });
  page.on("request", (request) => {
    if (/^https?:|^wss?:/.test(request.url())) origins.add(new URL(request.url()).origin);
  });
}

/** Signs in by the form. */
export async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Waits until the page shows a text. */
export const sees = (page: Page, text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor();

/** Presses a button. */
export const press = (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name, exact: true }).click();

/** Makes an endpoint of a folder with a handler, and returns its id. */
export async function makeEndpoint(
  { api }: Dashboard,
  folder: string,
  fields: Readonly<Record<string, unknown>>,
): Promise<string> {
  const of = { name: `template of ${fields.name}`, imageName: folder, isServerless: true };
  const template = await api("POST", "/v1/templates", of);
  return (await api("POST", "/v1/endpoints", { ...fields, templateId: template.id })).id;
}
