import { beforeAll, describe, expect, it } from "vitest";
import { call } from "../../harness.js";
import { makeEndpoint, press, sees, useDashboard } from "./visit.js";

const dashboard = useDashboard({ MILLRACE_RATE_LIMITS: "off", MILLRACE_STOP_GRACE: "1" });
/** What a browser says of a server that is being started again. */
const startedAgain = /^failed: |^error: .*net::ERR|^50[23] /;
let idle: string;
beforeAll(async () => {
  const folder = dashboard.handler("export default () => console.log('printed') ?? [];");
  idle = await makeEndpoint(dashboard, folder, { name: "without-workers", workersMax: 0 });
});

describe("A job that waits", () => {
  it("is shown with the time that it has waited by now", async () => {
    const { id } = await dashboard.api("POST", `/v2/${idle}/run`, { input: {} });
    const page = await dashboard.visit(`/endpoints/${idle}/jobs/${id}`);
    const waited = page.locator("figure.timeline li b");
    const seconds = async () => Number(/^([\d.]+) s$/.exec((await waited.textContent()) ?? "")?.[1] ?? 0);
    await waited.waitFor();
    await expect.poll(seconds, { timeout: 15_000 }).toBeGreaterThanOrEqual(4);
  });
});

describe("A job that is being watched while the server is started again", () => {
  it("is followed to its end", async () => {
    const page = await dashboard.visit(`/endpoints/${idle}/try`, { provoked: startedAgain });
    await press(page, "Run");
    const watched = page.locator("section.panel");
    await watched.getByText("waiting").waitFor();
    await dashboard.server.stop();
    await watched.getByRole("alert").getByText("The server does not answer").waitFor({ timeout: 15_000 });
    await dashboard.server.restart();
    const id = await watched.getByRole("link").textContent();
    await dashboard.api("POST", `/v2/${idle}/cancel/${id}`);
    await watched.getByText("cancelled").waitFor({ timeout: 30_000 });
    expect(await watched.getByRole("alert").count()).toBe(0);
  });

  it("goes on streaming", async () => {
    const source = `export default async function* () {
      for (let n = 0; n < 40; n++) { yield "part " + n + ";"; await new Promise((done) => setTimeout(done, 250)); }
    }`;
    const streams = await makeEndpoint(dashboard, dashboard.handler(source), { name: "streams" });
    const page = await dashboard.visit(`/endpoints/${streams}/try`, { provoked: startedAgain });
    await press(page, "Run");
    await sees(page, /part 2;/);
    await dashboard.server.stop();
    await dashboard.server.restart();
    await page.getByText("part 39;").waitFor({ timeout: 60_000 });
  });
});

describe("A job whose handler only prints, and returns nothing", () => {
  it("shows what its worker printed while it ran, and an empty list as one", async () => {
    const printer = dashboard.handler("export default ({ say }) => console.log('said ' + say) ?? [];");
    const endpoint = await makeEndpoint(dashboard, printer, { name: "prints", workersMax: 1, idleTimeout: 60 });
    const run = async (say: string) => {
      const job = await dashboard.api("POST", `/v2/${endpoint}/runsync?wait=60000`, { input: { say } });
      await new Promise((resolve) => setTimeout(resolve, 1_500)); // what follows within a second is shown, too
      return job;
    };
    await run("before");
    const { id } = await run("this");
    await run("after");
    const page = await dashboard.visit(`/endpoints/${endpoint}/jobs/${id}`);
    await page.getByRole("region", { name: "Output" }).getByText("[]", { exact: true }).waitFor({ timeout: 30_000 });
    const log = page.getByRole("region", { name: "Its log" });
    await log.getByText("said this").waitFor();
    expect(await log.getByText(/said (before|after)/).count()).toBe(0);
  });
});

describe("A page that a key may not see", () => {
  it("asks once, and says so at once", async () => {
    const scope = { endpoints: [{ id: idle, access: "run" }] };
    const { key } = await dashboard.api("POST", "/v1/apikeys", { name: "of one endpoint", scope });
    let asked = 0;
    const before = (page: import("playwright-core").Page) => {
      page.on("request", (request) => {
        if (request.url().endsWith("/v1/secrets")) asked++;
      });
      return Promise.resolve();
    };
    const page = await dashboard.visit("/secrets", { key, provoked: /^401 GET .*secrets$/, before });
    await sees(page, "This key is for chosen endpoints: it does not see secrets.");
    expect(asked).toBe(1);
    expect((await call(dashboard.server, "GET", "/v1/secrets")).status).toBe(200);
  });
});
