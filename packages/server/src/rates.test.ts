import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { limits } from "./limits/index.js";
import { Grants, Rates, rateRows } from "./rates.js";
import type { Grant } from "./store/index.js";

const startAt = 1_790_000_000_000;
const owner = "1/endpoint000001";

/** Admits `count` requests that end at once, and returns how many were admitted. */
function burst(rates: Rates, count: number, now: number, allowance = 0, operation: "run" | "purge-queue" = "run") {
  let admitted = 0;
  for (let n = 0; n < count; n++) {
    const admission = rates.admit(owner, operation, allowance, now);
    if (!admission.ok) continue;
    admission.release();
    admitted++;
  }
  return admitted;
}

describe("The window", () => {
  it("admits as many as its limit, and another one when the first has left", () => {
    const rates = new Rates();
    expect(burst(rates, 600, startAt)).toBe(600);
    expect(burst(rates, 600, startAt + 5_000)).toBe(rateRows.run.requests - 600);
    expect(burst(rates, 1, startAt + 9_899)).toBe(0);
    expect(burst(rates, 2_000, startAt + 10_100)).toBe(600);
    expect(burst(rates, 2_000, startAt + 15_100)).toBe(400);
  });

  it("is empty again after a long rest", () => {
    const rates = new Rates();
    burst(rates, 2_000, startAt);
    expect(burst(rates, 2_000, startAt + 3_600_000)).toBe(rateRows.run.requests);
  });

  it("counts no refused request", () => {
    const rates = new Rates();
    burst(rates, 5_000, startAt);
    burst(rates, 5_000, startAt + 9_000);
    expect(burst(rates, 5_000, startAt + 10_100)).toBe(rateRows.run.requests);
  });

  it("never admits more than its limit in any ten seconds, within its step of 100 ms", () => {
    const request = fc.record({ afterMs: fc.nat(3_000), count: fc.nat(4) });
    fc.assert(
      fc.property(fc.array(request, { maxLength: 60 }), (requests) => {
        const rates = new Rates();
        const times: number[] = [];
        let now = startAt;
        for (const { afterMs, count } of requests) {
          now += afterMs;
          const admitted = burst(rates, count, now, 0, "purge-queue");
          for (let n = 0; n < admitted; n++) times.push(now);
        }
        const { requests: most } = rateRows["purge-queue"];
        for (const at of times) {
          expect(times.filter((other) => other >= at && other < at + 9_900).length).toBeLessThanOrEqual(most);
        }
      }),
    );
  });
});

describe("A refusal", () => {
  it("shows the limit, the rest of it, and when to retry: then there is room", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9_999), { minLength: 2, maxLength: 2 }), fc.nat(9_999), (ago, later) => {
        const rates = new Rates();
        const times = ago.map((ms) => startAt + ms).sort((a, b) => a - b);
        for (const at of times) burst(rates, 1, at, 0, "purge-queue");
        const now = Math.max(times[1]!, startAt + later);
        const refused = rates.admit(owner, "purge-queue", 0, now);
        if (refused.ok) return;
        expect(refused).toMatchObject({ limit: 2, remaining: 0 });
        expect(refused.retryAfterSeconds).toBeGreaterThanOrEqual(1);
        expect(refused.retryAfterSeconds).toBeLessThanOrEqual(10);
        expect(burst(rates, 1, now + refused.retryAfterSeconds * 1_000, 0, "purge-queue")).toBe(1);
      }),
    );
  });

  it("for too many requests in flight asks to retry after a second", () => {
    const rates = new Rates();
    const held = Array.from({ length: rateRows.run.concurrent }, () => rates.admit(owner, "run", 0, startAt));
    expect(rates.admit(owner, "run", 0, startAt)).toEqual({
      ok: false,
      limit: rateRows.run.requests,
      remaining: rateRows.run.requests - rateRows.run.concurrent,
      retryAfterSeconds: 1,
      concurrentMax: rateRows.run.concurrent,
    });
    const [one] = held;
    if (one?.ok) {
      one.release();
      one.release();
    }
    expect(rates.admit(owner, "run", 0, startAt).ok).toBe(true);
    expect(rates.admit(owner, "run", 0, startAt).ok).toBe(false);
  });
});

describe("A limit", () => {
  it("grows with the running workers, and the concurrency by the same factor", () => {
    const rates = new Rates();
    const allowance = 3 * rateRows.run.requests;
    let admitted = 0;
    while (rates.admit(owner, "run", allowance, startAt).ok) admitted++;
    expect(admitted).toBe(3 * rateRows.run.concurrent);
    expect(burst(new Rates(), 5_000, startAt, allowance)).toBe(allowance);
  });

  it("is never lowered by few workers", () => {
    expect(burst(new Rates(), 5_000, startAt, 100)).toBe(rateRows.run.requests);
  });

  it("applies per owner, endpoint and operation", () => {
    const rates = new Rates();
    burst(rates, 5_000, startAt);
    expect(rates.admit("2/endpoint000001", "run", 0, startAt).ok).toBe(true);
    expect(rates.admit("1/endpoint000002", "run", 0, startAt).ok).toBe(true);
    expect(rates.admit(owner, "status", 0, startAt).ok).toBe(true);
  });

  it("matches the contract", () => {
    expect(rateRows).toEqual({
      runsync: { requests: 2_000, concurrent: 400 },
      run: { requests: 1_000, concurrent: 200 },
      status: { requests: 2_000, concurrent: 400 },
      stream: { requests: 2_000, concurrent: 400 },
      cancel: { requests: 100, concurrent: 20 },
      "purge-queue": { requests: 2, concurrent: Number.POSITIVE_INFINITY },
      openai: { requests: 2_000, concurrent: 400 },
      requests: { requests: 10, concurrent: 2 },
    });
  });
});

/** The common window, as the database stores it. */
function commonWindow() {
  const taken: { at: number; count: number }[] = [];
  return async ({ limit, count, now }: Grant): Promise<number> => {
    await new Promise((later) => setImmediate(later));
    const used = taken.filter(({ at }) => at > now - 10_000).reduce((sum, each) => sum + each.count, 0);
    const granted = Math.max(0, Math.min(count, limit - used));
    if (granted > 0) taken.push({ at: now, count: granted });
    return granted;
  };
}

describe("Servers that share a limit", () => {
  const limit = 1_000;
  const open = (servers: number) => {
    const grant = commonWindow();
    return Array.from({ length: servers }, () => new Grants(grant, () => false));
  };
  const admitted = async (requests: readonly Promise<boolean>[]) =>
    (await Promise.all(requests)).filter((isAdmitted) => isAdmitted).length;

  it("admit a burst at once, up to the limit", async () => {
    const [one] = open(1);
    expect(await admitted(Array.from({ length: 300 }, () => one!.admit(owner, limit, startAt)))).toBe(300);
    expect(await admitted(Array.from({ length: 2_000 }, () => one!.admit(owner, limit, startAt)))).toBe(700);
  });

  it.each([2, 3, 5])(
    "admit no more than the limit, and at least all but 2 %% per server: %i servers",
    async (count) => {
      const servers = open(count);
      let all = 0;
      for (let n = 0; n < 40; n++) {
        const requests = Array.from({ length: 50 }, (_, k) =>
          servers[(n * k) % count]!.admit(owner, limit, startAt + n * 10),
        );
        all += await admitted(requests);
      }
      expect(all).toBeLessThanOrEqual(limit);
      expect(all).toBeGreaterThanOrEqual(limit - count * limit * limits.grantShare);
    },
  );

  it("admit requests one after another while the window moves", async () => {
    const servers = open(2);
    const times: number[] = [];
    for (let n = 0; n < 6_000; n++) {
      const now = startAt + n * 5;
      if (await servers[n % 2]!.admit(owner, limit, now)) times.push(now);
    }
    // Granted requests may be used a second later.
    const slack = 2 * limit * limits.grantShare;
    for (const at of times.filter((_, n) => n % 50 === 0)) {
      expect(times.filter((other) => other >= at && other < at + 9_900).length).toBeLessThanOrEqual(limit + slack);
    }
    expect(times.length).toBeGreaterThan(2_900);
  });

  it("do not ask the database while only one server runs, and refuse if the database cannot be asked", async () => {
    const asked: string[] = [];
    let isAlone = true;
    const grants = new Grants(
      async ({ name }) => {
        asked.push(name);
        throw new Error("the database is away");
      },
      () => isAlone,
    );
    expect(await grants.admit(owner, 1, startAt)).toBe(true);
    expect(asked).toEqual([]);
    isAlone = false;
    await expect(grants.admit(owner, 1, startAt)).rejects.toThrow("away");
    await expect(grants.admit(owner, 1, startAt)).rejects.toThrow("away");
    expect(asked).toEqual([owner, owner]);
  });
});
