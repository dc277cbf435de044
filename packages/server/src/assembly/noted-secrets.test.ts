import { expect, it } from "vitest";
import { limits } from "../limits/index.js";
import type { JobSecret } from "../store/index.js";
import { notedSecrets } from "./noted-secrets.js";

/** A database of noted secrets, in which two servers write. */
function scene(isAlone = false) {
  const noted: (JobSecret & { readonly workerNo: number })[] = [];
  let now = 100_000;
  const asked = { newest: 0, of: 0 };
  const needs = {
    clock: {
      now: () => now,
      sleep: async (ms: number) => {
        now += ms;
      },
    },
    registry: { worker: (id: string) => ({ row: { no: Number(id) } }) },
    vault: { open: (sealed: string) => sealed },
    secrets: {
      newestOfJobs: async () => {
        asked.newest++;
        return Math.max(0, ...noted.map(({ no }) => no));
      },
      ofJobs: async (workerNo: number, after: number) => {
        asked.of++;
        const theirs = noted.filter((each) => each.workerNo === workerNo && each.no > after);
        return theirs.sort((a, b) => a.no - b.no);
      },
    },
  };
  const secretsOf = notedSecrets(needs as unknown as Parameters<typeof notedSecrets>[0], { isAlone });
  const add = (no: number, workerNo: number) => noted.push({ no, workerNo, value: `secret ${no}` });
  return { secretsOf, add, asked, pass: (ms: number) => void (now += ms) };
}

it("While no secrets are noted, workers that print cost one look for all of them", async () => {
  const { secretsOf, add, asked, pass } = scene();
  add(1, 1);
  const workers = Array.from({ length: 50 }, (_, n) => secretsOf(String(n + 1)));
  expect((await Promise.all(workers.map((more) => more()))).flat()).toEqual(["secret 1"]);
  await Promise.all(workers.map((more) => more()));
  pass(2 * limits.jobSecretsLateMs);
  await Promise.all(workers.map((more) => more()));
  const before = { ...asked };
  pass(2 * limits.jobSecretsLateMs);
  expect((await Promise.all(workers.map((more) => more()))).flat()).toEqual([]);
  expect(asked.of).toBe(before.of);
  expect(asked.newest - before.newest).toBeLessThanOrEqual(2);
});

it("A secret that was noted before a look is found by it, also one that is seen after a later one", async () => {
  const { secretsOf, add, pass } = scene();
  const more = secretsOf("7");
  expect(await more()).toEqual([]);
  pass(60_000);
  expect(await more()).toEqual([]);
  add(5, 7);
  expect(await more()).toEqual(["secret 5"]);
  pass(60_000);
  add(9, 8);
  expect(await more()).toEqual([]);
  add(8, 7); // begun before the other, and committed after it
  expect(await more()).toEqual(["secret 8"]);
});

it("A server that is alone reads once", async () => {
  const { secretsOf, add, asked } = scene(true);
  add(1, 7);
  const more = secretsOf("7");
  expect([await more(), await more()]).toEqual([["secret 1"], []]);
  expect(asked).toEqual({ newest: 0, of: 1 });
});
