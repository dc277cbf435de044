import { expect, it } from "vitest";
import type { Calls } from "../calls.js";
import { nouns } from "./nouns.js";
import { find, listOf } from "./resources.js";

const webhooks = nouns.find(({ noun }) => noun === "webhook")!;

/** A server that shows this many receivers, in pages of 100. */
function serverOf(count: number) {
  const all = Array.from({ length: count }, (_, n) => ({
    id: `id${n}`,
    origin: `https://h${`${n}`.padStart(4, "0")}`,
  }));
  const asked: string[] = [];
  const call = async (_: string, path: string) => {
    asked.push(path);
    const after = new URL(path, "http://server").searchParams.get("after") ?? "";
    return all.filter(({ origin }) => origin > after).slice(0, 100);
  };
  return { all, asked, calls: { call } as unknown as Calls };
}

it.each([
  [0, 1],
  [99, 1],
  [100, 2],
  [250, 3],
])("a list of %i is read in %i pages", async (count, pages) => {
  const { all, asked, calls } = serverOf(count);
  expect(await listOf(calls, webhooks)).toEqual(all);
  expect(asked).toHaveLength(pages);
});

it("one on a later page is found by its name", async () => {
  const { calls } = serverOf(250);
  expect(await find(calls, webhooks, "https://h0249")).toMatchObject({ id: "id249" });
});

it.each([
  "https://h0001",
  "https://h0001/hook?a=b",
  "https://h0001:443/hook",
  "HTTPS://H0001/",
  "https://me:pw@h0001/#c",
])("a receiver is found by a URL that webhooks go to: %s", async (url) => {
  const { calls } = serverOf(3);
  expect(await find(calls, webhooks, url)).toMatchObject({ id: "id1" });
});

it.each([
  [
    "https://h0001:8443/hook",
    'There is no receiver "https://h0001:8443" yet: nothing was sent there in the last week.',
  ],
  ["http://h0001/hook", 'There is no receiver "http://h0001" yet: nothing was sent there in the last week.'],
  ["h0001", 'Receiver "h0001" does not exist.'],
  ["https://", 'Receiver "https://" does not exist.'],
])("a receiver is not found by another's URL: %s", async (url, why) => {
  const { calls } = serverOf(3);
  await expect(find(calls, webhooks, url)).rejects.toThrow(why);
});

it.each([
  [{ state: "healthy", failures: 0 }, /^healthy$/],
  [{ state: "healthy", failures: 4, failingSince: "2026-01-01T00:00:00Z" }, /^healthy$/],
  [{ state: "failing", failures: 5, failingSince: "2026-01-01T00:00:00Z" }, /^failing for \d+ h /],
  [{ state: "paused", failures: 5, pausedAt: "2026-01-01T00:00:00Z" }, /^paused \d+ d ago$/],
])("a receiver's state is the API's word for it: %j", (receiver, shown) => {
  const state = webhooks.columns.find(({ title }) => title === "state");
  expect(state?.of({ id: "a", ...receiver })).toMatch(shown);
});
