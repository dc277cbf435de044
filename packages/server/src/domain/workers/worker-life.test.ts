import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { newWorker, workerChanges } from "../../testing/facts-fixture.js";
import type { Worker } from "./worker.js";
import { changed, mayHappenTo, transitionOf, type WorkerEvent, workerTransitions } from "./worker-life.js";

const events = Object.keys(workerTransitions) as WorkerEvent[];
const at = (stage: string): Worker =>
  stage === "ended" ? { ...newWorker, endedAt: 1 } : { ...newWorker, wanted: stage as Worker["wanted"] };

describe("A worker's life", () => {
  it("ends for good: nothing happens to a worker that has ended", () => {
    expect(events.filter((event) => mayHappenTo(event, at("ended")))).toEqual([]);
  });

  it("can end from every other stage, and remembers the last stage", () => {
    for (const stage of ["running", "closed", "paused", "stopped"]) {
      expect(mayHappenTo("end", at(stage))).toBe(true);
      expect(changed(at(stage), workerChanges.end)).toMatchObject({ wanted: stage, endedAt: expect.any(Number) });
    }
  });

  it("allows a place, and being ready, only once", () => {
    for (const event of ["place", "ready"] as const) {
      expect(mayHappenTo(event, at("running"))).toBe(true);
      expect(mayHappenTo(event, changed(at("running"), workerChanges[event]))).toBe(false);
    }
    expect(mayHappenTo("wait", changed(at("running"), workerChanges.place))).toBe(false);
  });

  it("never continues after it was stopped", () => {
    const after = events.filter((event) => mayHappenTo(event, at("stopped")));
    expect(after.map((event) => changed(at("stopped"), workerChanges[event]).wanted)).toEqual(
      after.map(() => "stopped"),
    );
  });

  it("matches the table of docs/architecture.md", () => {
    const page = readFileSync(join(import.meta.dirname, "../../../../../docs/architecture.md"), "utf8");
    const table = page.split("## A worker's life")[1]!.split("\n## ")[0]!;
    const rows = [...table.matchAll(/^\| ([\w, ]+) \| ([\w, ]+) \| ([\w ]+) \| /gm)].slice(1);
    const told = rows.flatMap(([, named, from, to]) =>
      named!.split(", ").map((event) => [event, from!.replace(", without a place", ""), to]),
    );
    const known = events.map((event) => {
      const { from, to } = transitionOf(event);
      return [
        event,
        from.length === 4 ? "any" : from.join(", "),
        to ?? (from.length === 1 && from[0] === "stopped" ? "stopped" : "the same"),
      ];
    });
    expect(Object.fromEntries(told.map(([event, ...rest]) => [event, rest]))).toEqual(
      Object.fromEntries(known.map(([event, ...rest]) => [event, rest])),
    );
  });
});
