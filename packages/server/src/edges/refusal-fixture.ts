import { ErrorBody } from "@millrace/api";
import { Value } from "typebox/value";
import { expect } from "vitest";
import { type RefusalCode, refusals } from "../domain/refusals.js";
import type { Answer } from "../testing/http-fixture.js";

/** Every refusal has this form. */
export function expectRefusal(answer: Answer, code: RefusalCode): void {
  expect(answer.json).toMatchObject({ code });
  expect(answer.status).toBe(refusals[code].status);
  expect(Object.keys(answer.json).sort()).toEqual(["code", "error", "requestId"]);
  expect(Value.Check(ErrorBody, answer.json)).toBe(true);
  expect(answer.json.error).toMatch(/^[A-Z'].*\.$/s);
  expect(answer.json.error).not.toMatch(/\bat .*:\d+|SELECT|\/(home|work|tmp|root)\//);
  expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(answer.headers.get("x-request-id")).toBe(answer.json.requestId);
  expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
}
