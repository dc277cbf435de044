import { ErrorBody, v2 } from "@millrace/api";
import { Value } from "typebox/value";
import { expect } from "vitest";
import { type RefusalCode, refusals } from "../domain/refusals.js";
import type { Answer } from "../testing/http-fixture.js";

/** Every refusal has this form, or RFC 9457's in REST v2. */
export function expectRefusal(answer: Answer, code: RefusalCode): void {
  expect(answer.json).toMatchObject({ code });
  expect(answer.status).toBe(refusals[code].status);
  const isProblem = answer.headers.get("content-type")?.startsWith("application/problem+json");
  if (isProblem) expect(Value.Check(v2.Problem, answer.json)).toBe(true);
  else {
    expect(Object.keys(answer.json).sort()).toEqual(["code", "error", "requestId"]);
    expect(Value.Check(ErrorBody, answer.json)).toBe(true);
    expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
  }
  const sentence = isProblem ? answer.json.detail : answer.json.error;
  expect(sentence).toMatch(/^[A-Z'].*\.$/s);
  expect(sentence).not.toMatch(/\bat .*:\d+|SELECT|\/(home|work|tmp|root)\//);
  expect(answer.headers.get("x-request-id")).toBe(answer.json.requestId);
  expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
}
