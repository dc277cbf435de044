import { expect } from "vitest";
import type { Answer } from "../../testing/http-fixture.js";

/** The body of a reply that must be a success. */
export const made = async (asked: Promise<Answer>) => {
  const { status, json, text } = await asked;
  expect(status, text).toBe(200);
  return json;
};

/** Expects a refusal with this status, and an error that matches these words. */
export const refused = async (asked: Promise<Answer>, status: number, words: RegExp) => {
  const { status: got, json, text } = await asked;
  expect([got, json?.error], text).toEqual([status, expect.stringMatching(words)]);
};
