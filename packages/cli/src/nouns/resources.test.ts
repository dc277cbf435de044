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
