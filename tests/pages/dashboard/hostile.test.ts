import { beforeAll, describe, expect, it } from "vitest";
import { until } from "../../harness.js";
import { overflow } from "../looks.js";
import { makeEndpoint, sees, useDashboard } from "./visit.js";

const dashboard = useDashboard({ MILLRACE_RATE_LIMITS: "off" });
const name = `<b>x</b>${"w".repeat(160)}`;

/** A handler whose output, error and log are as unkind to a page as they can be. */
const handler = `
export default (input, job) => {
  job.log.info("\\x1b[31mred\\x1b[0m <script>alert(1)</script> " + "y".repeat(600));
  if (input.fail) throw new Error("<b>bold</b> " + "z".repeat(3000));
  return {
    ["k".repeat(300)]: "<script>alert(1)</script>",
    nested: JSON.parse("[".repeat(200) + "]".repeat(200)),
    number: 1,
    long: "q".repeat(10_000),
  };
};
`;
let endpoint: string;
let jobs: readonly string[];
beforeAll(async () => {
  endpoint = await makeEndpoint(dashboard, dashboard.handler(handler), { name, idleTimeout: 600 });
  const run = async (input: unknown): Promise<string> =>
    (await dashboard.api("POST", `/v2/${endpoint}/run`, { input })).id;
  jobs = [await run({}), await run({ fail: 1 })];
  const ends = async (id: string) => (await dashboard.api("GET", `/v2/${endpoint}/status/${id}`)).executionTime > 0;
  for (const id of jobs) await until(() => ends(id), 60_000);
  // another one that waits beside a name which turns what follows it around
  const turned = await makeEndpoint(dashboard, dashboard.handler(handler), { name: "turned \u202e", workersMax: 0 });
  await dashboard.api("POST", `/v2/${turned}/run`, { input: {} });
});

describe("What a handler returns, throws and logs", () => {
  for (const width of [360, 1_280])
    it(`does not make the page wider than a window of ${width} pixels`, async () => {
      for (const id of jobs) {
        const page = await dashboard.visit(`/endpoints/${endpoint}/jobs/${id}`, { width });
        await sees(page, "time limit");
        await page.locator(".log .line").first().waitFor();
        expect(await overflow(page)).toBe(0);
      }
    });
});

describe("A long name", () => {
  it("leaves room for the other columns of its table", async () => {
    const page = await dashboard.visit("/");
    const head = page.getByRole("columnheader", { name: "Runs on" });
    await head.waitFor();
    const box = await head.boundingBox();
    expect((box?.x ?? 0) + (box?.width ?? 9_999)).toBeLessThanOrEqual(1_280);
  });

  it("leaves room for what its page shows, and can be read whole", async () => {
    const page = await dashboard.visit(`/endpoints/${endpoint}`, { width: 360 });
    const title = page.getByRole("heading", { level: 1 });
    await sees(page, /^\d+ shown/);
    expect((await title.boundingBox())?.height).toBeLessThanOrEqual(90);
    expect(await page.getByTitle(name, { exact: true }).count()).toBe(1);
  });
});

describe("A name that turns the direction of text", () => {
  it("leaves the words beside it as they are", async () => {
    const page = await dashboard.visit("/");
    const link = page.getByRole("region", { name: "Needs attention" }).getByRole("link");
    await link.waitFor();
    expect(await page.evaluate("getComputedStyle(document.querySelector('.attention a')).unicodeBidi")).toBe("isolate");
  });
});
