import { describe, expect, it } from "vitest";
import { chooseHost, isThere } from "./host.js";

const host = (no: number, location: string | undefined, workers: number) => ({ no, location, workers });

describe("A worker's host", () => {
  it("is the one with the fewest workers, the first of equals", () => {
    expect(chooseHost([host(1, undefined, 2), host(2, undefined, 1), host(3, undefined, 1)], "")).toBe(2);
  });

  it("is in one of the endpoint's places, where it names some", () => {
    expect(chooseHost([host(1, "US", 0), host(2, "FR", 5)], "FR,CZ")).toBe(2);
    expect(chooseHost([host(1, "US", 0)], "FR")).toBeUndefined();
  });

  it("fits every place when it does not say where it is", () => {
    expect(isThere({ location: undefined }, "FR")).toBe(true);
    expect(isThere({ location: "US" }, "")).toBe(true);
    expect(isThere({ location: "US" }, "FR")).toBe(false);
  });
});
