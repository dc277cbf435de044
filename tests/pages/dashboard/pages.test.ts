import { beforeAll, describe, expect, it } from "vitest";
import { overflow, violations } from "../looks.js";
import { everyPage, type Ids, seed, useSeededDashboard } from "./every-page.js";
import { sees } from "./visit.js";

const dashboard = useSeededDashboard();
let ids: Ids;
beforeAll(async () => {
  ids = await seed(dashboard);
});

interface Shown {
  readonly name: string;
  readonly path: (ids: Ids) => string;
  readonly full: string | RegExp;
  readonly key?: null;
}

/** What else a page shows: something open, a dialog, a visitor who has not signed in. */
const more: readonly Shown[] = [
  { name: "Sign in", path: () => "/sign-in", full: "An admin makes keys", key: null },
  { name: "No such page", path: () => "/endpoints/a/b/c", full: "There is no such page" },
  { name: "A failed job", path: ({ endpoint, failed }) => `/endpoints/${endpoint}/jobs/${failed}`, full: "Send again" },
  {
    name: "A worker",
    path: ({ endpoint, worker }) => `/endpoints/${endpoint}/workers?worker=${worker}`,
    full: "until it was ready",
  },
  { name: "A delivery", path: ({ delivery }) => `/webhooks?open=${delivery}`, full: "Send again" },
  { name: "A template", path: ({ template }) => `/templates?open=${template}`, full: "Save" },
  ...["template", "volume", "pod", "secret", "user"].map((noun) => ({
    name: `New ${noun}`,
    path: () => `/${noun}s?open=new`,
    full: "Cancel",
  })),
  { name: "New key", path: () => "/keys?open=new", full: "Cancel" },
  { name: "New registry", path: () => "/registries?open=new", full: "Cancel" },
];

describe("Every page, in light and dark, on a phone, a tablet and a desk", () => {
  it.each<Shown>([...everyPage, ...more])("$name is accessible, and fits", async ({ path, full, key }) => {
    const page = await dashboard.visit(path(ids), key === null ? { key } : {});
    await sees(page, full);
    expect(await violations(page)).toEqual([]);
    for (const width of [1_280, 820, 360]) {
      await page.setViewportSize({ width, height: 740 });
      // charts follow the window a moment later
      await expect.poll(() => overflow(page), { message: `at ${width} px`, timeout: 5_000 }).toBe(0);
    }
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await violations(page)).toEqual([]);
  });
});
