import { describe, expect, it } from "vitest";
import type { Scope } from "../access/key.js";
import { anotherUsers, namedFor, podHolder, silentHolder, workerHolder } from "./holders.js";

const id = (letter: string) => letter.repeat(14);
const lacks = (...names: string[]) => `It needs a GPU; free here: 0 of 8; held by ${names.join(", ")} and 3 more.`;
const scope: Scope = { kind: "endpoints", access: { [id("e")]: "read" } };
const everyone = [workerHolder(id("w"), id("e")), podHolder(id("p")), silentHolder(id("s")), anotherUsers];

describe("Who holds what a worker needs", () => {
  it("is named to a key that sees everything of its user", () => {
    expect(namedFor({ kind: "everything" }, lacks(...everyone))).toBe(lacks(...everyone));
    expect(namedFor({ kind: "readOnly" }, lacks(...everyone))).toBe(lacks(...everyone));
  });

  it("is named to a key of chosen endpoints only if it is one of theirs", () => {
    const named = [everyone[0] as string, "a pod", "a worker of a host that is silent", anotherUsers];
    expect(namedFor(scope, lacks(...everyone))).toBe(lacks(...named));
    const others = [workerHolder(id("v"), id("f")), workerHolder(id("u"), id("g"))];
    expect(namedFor(scope, lacks(others[0] as string))).toBe(lacks("another worker"));
    expect(namedFor(scope, lacks(...others))).toBe(lacks("other workers"));
  });

  it("changes no other sentence", () => {
    const sentence = "Your user may run 2 workers at a time, and runs 2: stop some, or ask an admin for more.";
    expect(namedFor(scope, sentence)).toBe(sentence);
  });
});
