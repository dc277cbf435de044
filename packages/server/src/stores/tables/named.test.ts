import { expect, it } from "vitest";
import { named } from "./named.js";

it("Parameters are numbered by the order of their names, and casts stay", () => {
  const { text, values } = named("$", ["no", "now"], "UPDATE job SET at = :now::bigint WHERE no = :no AND at < :now");
  expect(text).toBe("UPDATE job SET at = $2::bigint WHERE no = $1 AND at < $2");
  expect(values({ now: 5, no: 1 })).toEqual([1, 5]);
});

it("A name that only the statement has, or only the list, is an error", () => {
  expect(() => named("?", ["no"], "SELECT :other, :no")).toThrow(":other is not a parameter");
  expect(() => named("?", ["no", "now"], "SELECT :no")).toThrow("now not used");
});
