import { describe, expect, it } from "vitest";
import { dataCenters } from "../../limits/index.js";
import { countryOf, isThere } from "./host.js";

const isIn = (location: string | undefined, locations: string, ...dataCenterIds: string[]) =>
  isThere({ location }, { locations, dataCenterIds });

describe("A host", () => {
  it("fits every location if its own is unset", () => {
    expect(isIn(undefined, "FR", "EU-FR-1")).toBe(true);
  });

  it("is in the country of its code, or of its data centre", () => {
    expect([isIn("US", ""), isIn("US", "FR"), isIn("US", "FR,US")]).toEqual([true, false, true]);
    expect([isIn("EU-CZ-1", "CZ"), isIn("EU-CZ-1", "FR")]).toEqual([true, false]);
  });

  it("is in its data centre; if it names only its country, in any data centre of that country", () => {
    expect([isIn("EU-CZ-1", "", "EU-CZ-1"), isIn("EU-CZ-1", "", "EU-RO-1")]).toEqual([true, false]);
    expect([isIn("US", "", "US-TX-3"), isIn("US", "", "CA-MTL-1")]).toEqual([true, false]);
  });

  it("must fit both country and data centre if both are named", () => {
    expect([isIn("US-TX-3", "US", "US-GA-1"), isIn("US-TX-3", "FR", "US-TX-3")]).toEqual([false, false]);
  });

  it("fits an endpoint that names all data centres", () => {
    expect(isIn("GB", "", ...dataCenters)).toBe(true);
  });
});

describe("The country", () => {
  it.each([
    ["CZ", "CZ"],
    ["EU-RO-1", "RO"],
    ["EUR-NO-1", "NO"],
    ["US-DE-1", "US"],
    ["CA-MTL-3", "CA"],
    ["AP-JP-1", "JP"],
  ])("of %s is %s", (code, country) => {
    expect(countryOf(code)).toBe(country);
  });
});
