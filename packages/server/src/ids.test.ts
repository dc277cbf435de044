import { describe, expect, it } from "vitest";
import { systemIds } from "./ids.js";

const many = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

describe("Ids", () => {
  it("of resources are 14 lower-case letters and digits, and never repeat", () => {
    const ids = many(20_000, systemIds.resource);
    expect(ids.filter((id) => !/^[a-z0-9]{14}$/.test(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("of resources use every character equally often", () => {
    const counts = new Map<string, number>();
    for (const char of many(10_000, systemIds.resource).join("")) counts.set(char, (counts.get(char) ?? 0) + 1);
    expect(counts.size).toBe(36);
    const mean = 140_000 / 36;
    // Five deviations: with the bias of a byte's remainder, a favoured character has eight.
    for (const count of counts.values()) expect(Math.abs(count - mean)).toBeLessThan(5 * Math.sqrt(mean));
  });

  it("of jobs are UUIDs of version 7 that contain their time", () => {
    const now = 1_790_000_000_123;
    const uuid = systemIds.uuid(now);
    expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(Number.parseInt(uuid.replaceAll("-", "").slice(0, 12), 16)).toBe(now);
    expect(systemIds.uuid(now) < systemIds.uuid(now + 1)).toBe(true);
    expect(new Set(many(20_000, () => systemIds.uuid(now))).size).toBe(20_000);
  });

  it("that are secrets hold as many bytes as asked for", () => {
    expect(Buffer.from(systemIds.secret(32), "base64url")).toHaveLength(32);
    expect(systemIds.secret(32)).toMatch(/^[\w-]{43}$/);
    expect(new Set(many(1_000, () => systemIds.secret(32))).size).toBe(1_000);
  });
});
