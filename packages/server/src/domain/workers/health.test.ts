import { describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import {
  type Health,
  healthPauseMs,
  nextHealth,
  type PingAnswer,
  replaceAt,
  troubleOf,
  unknownHealth,
} from "./health.js";

const after = (...answers: PingAnswer[]): Health =>
  answers.reduce((health, answer, n) => nextHealth(health, answer, 1_000 * (n + 1)), unknownHealth);

describe("A worker", () => {
  it("is open from its first 200 on, and earlier answers do not count against it", () => {
    expect(after("failed", "failed", "failed", "failed", "initialising")).toEqual({ ...unknownHealth, at: 5_000 });
    expect(after("failed", "initialising", "ready").isOpen).toBe(true);
  });

  it("stays open for two failures in a row, and is shut at the third", () => {
    expect(after("ready", "failed", "failed").isOpen).toBe(true);
    expect(after("ready", "failed", "failed", "failed").isOpen).toBe(false);
    expect(after("ready", "failed", "failed", "ready", "failed", "failed").isOpen).toBe(true);
  });

  it("that initialises again is shut, without counting as a failure", () => {
    expect(after("ready", "initialising")).toMatchObject({ isOpen: false, failures: 0, failingSince: undefined });
  });

  it("is polled often until it is healthy, and then now and then", () => {
    expect(healthPauseMs(unknownHealth)).toBe(limits.healthSoonMs);
    expect(healthPauseMs(after("ready"))).toBe(limits.healthMs);
    expect(healthPauseMs(after("ready", "failed"))).toBe(limits.healthSoonMs);
  });

  it("that fails is replaced after a while, later if it has requests: it may be too busy to answer", () => {
    const failing = after("ready", "failed", "failed", "failed");
    expect(replaceAt(failing, false, 600_000)).toBe(2_000 + limits.healthPatienceMs);
    expect(replaceAt(failing, true, 600_000)).toBe(2_000 + 600_000);
    expect(replaceAt(after("ready", "failed"), false, 600_000)).toBeUndefined();
    expect(replaceAt(unknownHealth, false, 600_000)).toBeUndefined();
  });

  it("that cannot be asked is shut after three times, asked less often, and not replaced for it", () => {
    const away = { unreached: "no answer", detail: "ECONNREFUSED" };
    expect(after("ready", away, away).isOpen).toBe(true);
    const shut = after("ready", away, away, away);
    expect(shut.isOpen).toBe(false);
    expect(troubleOf(shut)).toBe("it cannot be reached: no answer");
    expect(healthPauseMs(shut)).toBe(limits.healthMs);
    expect(replaceAt(shut, false, 600_000)).toBeUndefined();
    expect(after("ready", away, away, away, "ready").isOpen).toBe(true);
    expect(troubleOf(after(away, away, away))).toBe("it cannot be reached: no answer");
  });

  it("that was failing before has as long as ever, without the time in which it could not be asked", () => {
    const away = { unreached: "no answer", detail: "ECONNREFUSED" };
    expect(replaceAt(after("ready", "failed", "failed", "failed", away, away), false, 0)).toBeUndefined();
    expect(replaceAt(after("ready", "failed", "failed", "failed", away, away, "failed"), false, 0)).toBe(
      2_000 + 2_000 + limits.healthPatienceMs,
    );
    expect(troubleOf(after("ready", "failed", "failed", "failed"))).toBe("it does not answer GET /ping with 200");
    expect(troubleOf(after("failed"))).toBeUndefined();
  });
});
