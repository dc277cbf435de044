import type { StatusBody } from "@millrace/api";
import { expect, it } from "vitest";
import { awaited } from "./jobs.js";

const job = (more: Partial<StatusBody>): StatusBody =>
  ({ id: "j", delayTime: 3_600_000, executionTime: 0, status: "IN_QUEUE", ...more }) as StatusBody;

it("The line about a job counts from the job's submission, and later from its beginning", () => {
  expect(awaited(job({ queuePosition: 0, waitDetail: "no room" }))).toBe("waiting 1 h 0 min · position 1 · no room");
  expect(awaited(job({ status: "IN_PROGRESS", executionTime: 2_000 }))).toMatch(/^running 2(\.0)? s$/);
});
