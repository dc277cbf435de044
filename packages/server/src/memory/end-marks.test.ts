import { expect, it } from "vitest";
import { newWorker } from "../testing/facts-fixture.js";
import { EndMarks } from "./end-marks.js";
import { LiveWorkers } from "./live-workers.js";

it("An end that is taken back is not the worker's next end", () => {
  const marks = new EndMarks();
  const worker = new LiveWorkers().admit({ ...newWorker, endedAt: 5 }, 1);
  expect(marks.has(worker)).toBe(false);
  marks.add(worker, 5);
  expect(marks.has(worker)).toBe(true);
  worker.row = { ...worker.row, endedAt: undefined };
  expect(marks.has(worker)).toBe(false);
  marks.add(worker, undefined);
  expect(marks.has(worker)).toBe(false);
  worker.row = { ...worker.row, endedAt: 6 };
  expect(marks.has(worker)).toBe(false);
});
