import { expect, it } from "vitest";
import type { JobSecret } from "../../store/index.js";
import { NotedSecrets } from "./noted-secrets.js";

it("Noted secrets are each returned once, also those that another server has noted late", async () => {
  const noted = new Map<number, JobSecret[]>();
  const add = (no: number) => noted.set(7, [...(noted.get(7) ?? []), { no, value: `sealed ${no}` }]);
  const secrets = {
    ofJobs: async (workerNo: number, after: number, limit: number) =>
      (noted.get(workerNo) ?? [])
        .filter(({ no }) => no > after)
        .sort((a, b) => a.no - b.no)
        .slice(0, limit),
  };
  const vault = { open: (sealed: string) => sealed.replace("sealed ", "") };
  const read = new NotedSecrets(7);
  const next = () => read.next({ secrets, vault } as unknown as Parameters<NotedSecrets["next"]>[0]);
  expect(await next()).toEqual([]);
  for (let no = 2; no <= 250; no++) add(no);
  expect(await next()).toHaveLength(249);
  add(1);
  add(251);
  expect(await next()).toEqual(["1", "251"]);
  expect(await next()).toEqual([]);
});
