import { setImmediate as immediate } from "node:timers/promises";
import { beforeEach, describe, expect, it } from "vitest";
import { limits } from "../limits/index.js";
import { MovableClock } from "../testing/movable-clock-fixture.js";
import { type ChangesByOwner, News, type NewsItem } from "./news.js";

const owner = 1;
let clock: MovableClock;
let news: News;
let told: (readonly NewsItem[] | "much")[];
beforeEach(() => {
  clock = new MovableClock();
  news = new News(clock, (id) => (id.startsWith("own") ? owner : 2));
  told = [];
  news.follow(owner, (items) => told.push(items));
});

const advance = (ms: number) => clock.advance(ms, async () => {});
const submitted = (endpointId: string) =>
  news.hear({ type: "job.submitted", endpointId, jobId: "job", requestId: "request" });

describe("What changes at this server", () => {
  it("is told to its owner, webhooks without an endpoint", async () => {
    submitted("own-1");
    submitted("other");
    news.noteWebhooks(owner);
    news.noteWebhooks(2);
    await advance(limits.newsRestMs);
    expect(told).toEqual([[{ endpointId: "own-1", what: ["jobs"] }, { what: ["webhooks"] }]]);
  });

  it("is counted for the other servers, whether or not anybody follows; settings are not: each server reads them", () => {
    const quiet = new News(clock, () => owner);
    quiet.note("own-1", "endpoint");
    expect(quiet.changes).toEqual({});
    quiet.hear({ type: "job.submitted", endpointId: "own-1", jobId: "job", requestId: "request" });
    quiet.noteWebhooks(owner);
    expect(quiet.changes).toEqual({ [owner]: 2 });
  });
});

describe("What changes at other servers", () => {
  /** Hears from two servers, as after each beat. */
  const hear = (second: number, third = 5) => hearOf({ 2: { [owner]: second }, 3: { [owner]: third } });
  const hearOf = async (servers: Record<number, ChangesByOwner>): Promise<void> => {
    news.hearElsewhere(new Map(Object.entries(servers).map(([no, changes]) => [Number(no), changes])));
    await immediate(); // it may have to wait for its turn
  };

  it("is told to its owner alone", async () => {
    await hear(1);
    await advance(limits.newsElsewhereMs);
    told.length = 0;
    await hearOf({ 2: { [owner]: 1, 2: 100 } });
    await advance(limits.newsElsewhereMs);
    await hearOf({ 2: { 2: 200 } });
    expect(told).toEqual([]);
    await hearOf({ 2: { [owner]: 2 } });
    expect(told).toEqual(["much"]);
  });

  it("is told while it goes on, at once and then every few seconds, and no longer once nothing changes", async () => {
    await hear(0);
    expect(told).toEqual(["much"]); // what these servers did before is not known
    await advance(limits.newsElsewhereMs);
    told.length = 0;
    await hear(0);
    expect(told).toEqual([]);
    await hear(1);
    expect(told).toEqual(["much"]);
    for (let count = 2; count < 5; count++) await hear(count);
    expect(told).toEqual(["much"]);
    await advance(limits.newsElsewhereMs);
    await hear(4); // what changed meanwhile
    expect(told).toEqual(["much", "much"]);
    await advance(10 * limits.newsElsewhereMs);
    await hear(4);
    expect(told).toEqual(["much", "much"]);
  });

  it("is told of a server that begins to count anew", async () => {
    await hear(9);
    await advance(limits.newsElsewhereMs);
    told.length = 0;
    await hear(0);
    expect(told).toEqual(["much"]);
  });
});
