import { beforeEach, describe, expect, it } from "vitest";
import { limits } from "../limits/index.js";
import { type Call, WebhookCalls } from "./webhook-calls.js";

const now = 1_000_000;
const half = limits.webhookConcurrency / 2;
const call = (ownerNo: number, host: string): Call => ({ ownerNo, host });
const hostsOf = (ownerNo: number, count: number) =>
  Array.from({ length: count }, (_, n) => call(ownerNo, `host-${n}-of-${ownerNo}`));

let places: WebhookCalls;
beforeEach(() => {
  places = new WebhookCalls();
});

/** Enters as many of these calls as there is room for, in fair order, and resolves with these and their ends. */
function enter(calls: readonly Call[], at = now) {
  const ends: ReturnType<WebhookCalls["enter"]>[] = [];
  const entered = places.inTurns(calls).filter((each) => {
    if (!places.mayCall(each, at)) return false;
    ends.push(places.enter(each, at));
    return true;
  });
  return { entered, end: (isSilent: boolean, endedAt = at) => ends.map((end) => end({ isSilent, now: endedAt })) };
}
const times = (n: number, calls: readonly Call[]) => Array.from({ length: n }, () => calls).flat();

describe("Slots for webhooks", () => {
  it("are few for each host, and one owner leaves some of them for others", () => {
    const [mine, theirs] = [call(1, "shared"), call(2, "shared")];
    expect(enter(times(9, [mine])).entered).toHaveLength(limits.webhookConcurrencyPerHost / 2);
    expect(places.mayCall(theirs, now)).toBe(true);
    enter(times(9, [theirs, mine]));
    expect([places.mayCall(theirs, now), places.mayCall(mine, now)]).toEqual([false, false]);
    expect(places.mayCall(call(3, "shared"), now)).toBe(true);
  });

  it("remain for other owners, however many hosts of one owner hang", () => {
    expect(enter(hostsOf(1, 1_000)).entered).toHaveLength(half);
    expect(places.mayCall(call(1, "one-more"), now)).toBe(false);
    expect(places.mayCall(call(2, "healthy"), now)).toBe(true);
  });

  it("are divided evenly if several owners want all of them", () => {
    const all = enter([1, 2, 3].flatMap((ownerNo) => hostsOf(ownerNo, 1_000))).entered;
    const counts = [1, 2, 3].map((ownerNo) => all.filter((each) => each.ownerNo === ownerNo).length);
    expect(counts).toEqual(Array(3).fill(limits.webhookConcurrency / 4));
  });

  it("remain for a healthy host of an owner whose 60 other hosts hang", () => {
    for (const hanging of hostsOf(1, 60)) enter(times(4, [hanging]));
    expect(places.mayCall(call(1, "healthy"), now)).toBe(true);
    expect(enter(hostsOf(1, 60)).entered).toEqual([]);
  });

  it("are fewer for a host that did not answer, until it answers or a long time has passed", () => {
    const host = [call(1, "silent")];
    enter(host).end(true);
    const next = enter(times(4, host));
    expect(next.entered).toHaveLength(limits.webhookConcurrencyPerSilentHost);
    const others = enter(times(4, [call(2, "silent")]));
    expect(others.entered, "another owner's calls").toHaveLength(3);
    others.end(false);
    next.end(false);
    expect(enter(times(4, host)).entered).toHaveLength(4);
    enter([call(3, "quiet")]).end(true);
    expect(enter(times(4, [call(3, "quiet")]), now + limits.webhookSilenceKeptMs).entered).toHaveLength(4);
  });

  it("of one owner are not all taken by its silent hosts", () => {
    for (let n = 0; n < 4; n++) enter(hostsOf(1, 1_000).slice(n * 250)).end(true);
    expect(enter(hostsOf(1, 1_000)).entered.length).toBeLessThan(0.7 * half);
    expect(enter(times(4, [call(1, "healthy")])).entered.length).toBeGreaterThan(0);
  });

  it("are given in turn to owners and to the hosts of each, first to those that have the fewest", () => {
    const waiting = [...times(2, [call(1, "a")]), call(1, "b"), ...times(2, [call(2, "c")])];
    const shown = () => places.inTurns(waiting).map(({ host }) => host);
    expect(shown()).toEqual(["a", "c", "b", "c", "a"]);
    enter([call(1, "a")]);
    expect(shown()).toEqual(["c", "b", "c", "a", "a"]);
  });

  it("forget the silent host called longest ago if there are too many", () => {
    const silent = Array.from({ length: limits.webhookSilentHostsMax + 1 }, (_, n) => call(n, `host-${n}`));
    for (const each of silent) places.enter(each, now)({ isSilent: true, now });
    expect(enter(times(4, [silent[0]!])).entered).toHaveLength(4);
    expect(enter(times(4, [silent[1]!])).entered).toHaveLength(limits.webhookConcurrencyPerSilentHost);
  });
});
