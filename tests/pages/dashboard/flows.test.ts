import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { sees, signIn, useDashboard } from "./visit.js";

const streaming = `
import { setTimeout as sleep } from "node:timers/promises";
export default async function* ({ words, fail }) {
  if (fail) throw new TypeError(fail);
  for (const word of words) {
    yield word + " ";
    await sleep(100);
  }
}
`;

/** The row of a list that has this text. */
const row = (page: Page, text: string | RegExp) => page.getByRole("row").filter({ hasText: text });
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
const follow = (page: Page, name: string) => page.getByRole("main").getByRole("link", { name, exact: true }).click();

describe("The first start", () => {
  // what only a terminal is shown
  const terminal = { NODE_OPTIONS: "--import=data:text/javascript,process.stdout.isTTY=true" };
  const dashboard = useDashboard({ MILLRACE_API_KEY: "", MILLRACE_RATE_LIMITS: "off", ...terminal });
  const linkOf = (log: string) => /dashboard +(http\S+)/.exec(log)?.[1]?.replace(dashboard.server.url, "") ?? "";

  it("prints a link that signs in once, and leaves no token in the address", async () => {
    const link = linkOf(dashboard.server.log());
    expect(link).toMatch(/^\/#once=./);
    const page = await dashboard.visit(link, { key: null });
    await sees(page, "No endpoint yet");
    expect(page.url()).toBe(`${dashboard.server.url}/`);

    const other = await dashboard.visit(link, { key: null, provoked: /^401 POST .*\/sign-in\/once$/ });
    await sees(other, "This link has already been used or has expired");
    expect(other.url()).not.toContain("once=");
    await signIn(other, readFileSync(join(dashboard.server.dataDir, "api-key"), "utf8").trim());
    await sees(other, "No endpoint yet");
  });
});

describe("A newcomer", () => {
  const dashboard = useDashboard({ MILLRACE_RATE_LIMITS: "off" });
  let folder: string;
  let idle: string;
  beforeAll(async () => {
    folder = dashboard.handler(streaming);
    const template = await dashboard.api("POST", "/v1/templates", { name: "t", imageName: folder, isServerless: true });
    const fields = { name: "without-workers", templateId: template.id, workersMax: 0 };
    idle = (await dashboard.api("POST", "/v1/endpoints", fields)).id;
  });

  async function makeEndpoint(name: string): Promise<string> {
    const template = await dashboard.api("POST", "/v1/templates", { name, imageName: folder, isServerless: true });
    return (await dashboard.api("POST", "/v1/endpoints", { name, templateId: template.id })).id;
  }

  it("is told that a key is wrong, and comes to the asked page with the right one", async () => {
    const page = await dashboard.visit("/secrets", { key: null, provoked: /^401 GET .*\/v1\/endpoints$/ });
    await signIn(page, "mr_wrong_0123456789abcdef0123456789abcdef");
    await page.getByRole("alert").getByText("This server does not know that key.").waitFor();
    await signIn(page, dashboard.server.key);
    await page.getByRole("heading", { name: "Secrets" }).waitFor();
  });

  it("signs out, and the page asks the server for nothing more", async () => {
    const page = await dashboard.visit("/sign-in", { key: null });
    await signIn(page, dashboard.server.key);
    await sees(page, "without-workers");
    await press(page, "Sign out");
    await page.getByLabel("API key").waitFor();
    await page.goBack();
    await page.getByLabel("API key").waitFor();
    expect(await page.evaluate("sessionStorage.length")).toBe(0);
  });

  it("makes an endpoint of a folder, runs a job, and watches what it streams", async () => {
    const page = await dashboard.visit("/");
    await follow(page, "New endpoint");
    await page.getByLabel(/^name/).first().fill("from-the-page");
    await page.getByLabel("image or folder").fill(folder);
    await press(page, "Create");
    await page.getByLabel("Input, a JSON object").fill('{"words":["mill","race"]}');
    await press(page, "Run");
    await page.locator(".stream").getByText("mill race").waitFor();
    await sees(page, "completed");
    await page.getByRole("navigation", { name: "Main" }).getByText("from-the-page").waitFor();
  });

  it("is told that an input is no JSON object", async () => {
    const page = await dashboard.visit(`/endpoints/${idle}/try`);
    await page.getByLabel("Input, a JSON object").fill("[1]");
    await press(page, "Run");
    await page.getByRole("alert").getByText("must be a JSON object").waitFor();
  });

  it("reads why a job waits", async () => {
    const page = await dashboard.visit(`/endpoints/${idle}/try`);
    await press(page, "Run");
    const why = "workersMax is 0: raise it to let workers start.";
    await sees(page, why);
    await page.goto(`${dashboard.server.url}/endpoints/${idle}`);
    await row(page, why).getByText("waiting").waitFor();
    await page.goto(`${dashboard.server.url}/`);
    await page.getByRole("region", { name: "Needs attention" }).getByText(why).waitFor();
  });

  it("reads a failed job's error and trace, repairs the handler, and retries", async () => {
    const mended = dashboard.handler(streaming);
    const template = await dashboard.api("POST", "/v1/templates", { name: "m", imageName: mended, isServerless: true });
    const { id } = await dashboard.api("POST", "/v1/endpoints", { name: "mended", templateId: template.id });
    const job = await dashboard.api("POST", `/v2/${id}/run`, { input: { fail: "no such word" } });
    const page = await dashboard.visit(`/endpoints/${id}/jobs/${job.id}`);
    await page.getByRole("heading", { name: "Error" }).waitFor();
    await sees(page, "TypeError: no such word");
    await page.locator("pre.trouble", { hasText: "handler.mjs:" }).waitFor();

    writeFileSync(join(mended, "handler.mjs"), `export default () => "mended";`);
    await page.goto(`${dashboard.server.url}/endpoints/${id}/workers`);
    await Promise.all([page.waitForResponse(/\/restart$/), press(page, "Replace all workers")]);
    await page.goto(`${dashboard.server.url}/endpoints/${id}/jobs/${job.id}`);
    await press(page, "Retry");
    await page.locator(".json .text", { hasText: "mended" }).waitFor();
    await page.getByRole("main").getByText("completed", { exact: true }).first().waitFor();
    expect(await page.getByRole("heading", { name: "Error" }).count()).toBe(0);
  });

  it("changes a setting, sees what the new version changed, and rolls back", async () => {
    const id = await makeEndpoint("released");
    const page = await dashboard.visit(`/endpoints/${id}/settings`);
    await page.locator(".field", { hasText: /^env/ }).getByRole("button", { name: "Add one" }).click();
    await page.getByLabel("Name 1").fill("COLOR");
    await page.getByLabel("Value of COLOR").fill("blue");
    await sees(page, "This makes version 2");
    await press(page, "Save");
    await sees(page, "version 2");

    await follow(page, "Releases");
    const diff = page.getByRole("region", { name: "What version 2 changed" });
    await diff.getByText("env.COLOR").waitFor();
    expect(await diff.getByRole("insertion").textContent()).toBe("blue");
    await press(page, "Roll back to 1");
    await page.getByRole("region", { name: "What version 3 changed" }).waitFor();
    await row(page, ", back to 1").waitFor();
    expect((await dashboard.api("GET", `/v1/endpoints/${id}`)).env).toEqual({});
  });

  it("is not offered to roll back to the version that serves", async () => {
    const page = await dashboard.visit(`/endpoints/${idle}/releases`);
    await sees(page, "Version 1, the first that is kept");
    expect(await page.getByRole("button", { name: "Roll back to 1" }).count()).toBe(0);
  });

  it("finds each group of fields by its name", async () => {
    const page = await dashboard.visit(`/endpoints/${idle}/settings`);
    await page.getByLabel("executionTimeoutMs").waitFor();
    await page.getByRole("group", { name: "env" }).waitFor({ timeout: 5_000 });
  });

  it("deletes an endpoint only with its name", async () => {
    const id = await makeEndpoint("short-lived");
    const page = await dashboard.visit(`/endpoints/${id}/settings`, { provoked: new RegExp(`^404 .*${id}`) });
    await press(page, "Delete");
    const dialog = page.getByRole("dialog");
    const deletes = dialog.getByRole("button", { name: "Delete" });
    await dialog.getByLabel("Type short-lived to go on").fill("short-live");
    expect(await deletes.isDisabled()).toBe(true);
    await dialog.getByLabel("Type short-lived to go on").fill("short-lived");
    await deletes.click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await expect.poll(() => row(page, "short-lived").count()).toBe(0);
  });

  it("makes a key that is shown once, and works", async () => {
    const page = await dashboard.visit("/keys?open=new");
    await page.getByRole("dialog").getByLabel(/^name/).fill("for-ci");
    await press(page, "Create");
    const key = (await page.locator("code.once").textContent()) ?? "";
    await press(page, "I have kept it");
    await row(page, "for-ci").waitFor();
    expect(await page.content()).not.toContain(key);
    const other = await dashboard.visit("/", { key: null });
    await signIn(other, key);
    await other.getByRole("heading", { name: "Overview" }).waitFor();
  });
});
