import { describe, expect, it } from "vitest";
import { mayChange, maySee, type Scope } from "./key.js";

const one: Scope = { kind: "endpoints", access: { mine: "run", read: "read" } };

describe("A key", () => {
  it.each<[Scope, string | undefined, boolean, boolean]>([
    [{ kind: "everything" }, "mine", true, true],
    [{ kind: "everything" }, undefined, true, true],
    [{ kind: "readOnly" }, "mine", true, false],
    [{ kind: "readOnly" }, undefined, true, false],
    [one, "mine", true, true],
    [one, "other", false, false],
    [one, undefined, false, false],
    [one, "read", true, false],
    [one, "constructor", false, false],
    [{ kind: "endpoints", access: {} }, "mine", false, false],
  ])("of scope %j sees and changes %s: %s, %s", (scope, endpointId, sees, changes) => {
    expect(mayChange(scope, endpointId)).toBe(changes);
    if (endpointId !== undefined) expect(maySee(scope, endpointId)).toBe(sees);
  });
});
